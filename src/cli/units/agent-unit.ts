import { quoteForSystemd } from './cleanup-units.js'

/** A systemd service for the agent. `dsc`: the words that start dsc; `config`: the path of dsc.yaml. */
export function formatAgentUnit(options: {
  readonly dsc: readonly string[]
  readonly config: string | undefined
  /** The user that it runs as. */
  readonly user: string
}): string {
  const { dsc, config, user } = options
  const words = [...dsc, 'agent', ...(config === undefined ? [] : ['--config', config])]
  return `# /etc/systemd/system/dsc-agent.service
# before: useradd --system ${user}, and give the cache root and the token file to it
# then: systemctl daemon-reload && systemctl enable --now dsc-agent.service
[Unit]
Description=Serve the dsc dataset cache of this node
After=local-fs.target network-online.target
Wants=network-online.target

[Service]
User=${user}
Group=${user}
ExecStart=${words.map(quoteForSystemd).join(' ')}
Restart=always
RestartSec=2
TimeoutStopSec=20
LimitNOFILE=65536
RuntimeDirectory=dsc
RuntimeDirectoryPreserve=restart
IOSchedulingClass=best-effort
IOSchedulingPriority=6
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
`
}
