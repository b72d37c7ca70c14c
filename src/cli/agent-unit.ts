import { quoteForSystemd } from './cleanup-units.js'

/** A systemd service for the agent. `dsc` is the path of bin/dsc.js, `config` that of dsc.yaml. */
export function formatAgentUnit(dsc: string, config: string | undefined): string {
  const words = [process.execPath, dsc, 'agent', ...(config === undefined ? [] : ['--config', config])]
  return `# /etc/systemd/system/dsc-agent.service
# then: systemctl daemon-reload && systemctl enable --now dsc-agent.service
[Unit]
Description=Serve the dsc dataset cache of this node
After=local-fs.target network-online.target
Wants=network-online.target

[Service]
ExecStart=${words.map(quoteForSystemd).join(' ')}
Restart=always
RestartSec=2
TimeoutStopSec=20
LimitNOFILE=65536
IOSchedulingClass=best-effort
IOSchedulingPriority=6
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
`
}
