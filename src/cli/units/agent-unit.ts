import { quoteForSystemd } from './cleanup-units.js'

/** The name of the service of a node. */
export const AGENT_UNIT = 'dsc-agent.service'

/**
 * The systemd service of a node, for the Linux packages and `dsc setup`. `dsc`: the words that start dsc.
 *
 * `systemd-analyze security` gives it 1.9. What stays open: sockets (users, stores and other nodes), the processes of
 * others (leases end with them), the ids of other users (the kernel says who knocks), code made while it runs (V8), home
 * folders, read-only (datasets may lie there), and chown to groups of the service's user, which needs no capability
 * (readers of a dataset, on file systems without access control lists).
 */
export function formatAgentUnit(dsc: readonly string[]): string {
  return `[Unit]
Description=Serve the dsc dataset cache of this node
Documentation=man:dsc(1)
After=local-fs.target network-online.target
Wants=network-online.target
ConditionPathExists=/etc/dsc/dsc.yaml

[Service]
User=dsc
Group=dsc
UMask=0022
ExecStart=${[...dsc, 'agent', '--config', '/etc/dsc/dsc.yaml'].map(quoteForSystemd).join(' ')}
Restart=always
RestartSec=2
TimeoutStopSec=20
LimitCORE=0
LimitNOFILE=65536
RuntimeDirectory=dsc
RuntimeDirectoryPreserve=restart
StateDirectory=dsc
IOSchedulingClass=best-effort
IOSchedulingPriority=6
CapabilityBoundingSet=
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=@chown

[Install]
WantedBy=multi-user.target
`
}

/** Lets the service write these folders besides its own: the sandbox leaves everything else read-only. */
export function formatWritableFolders(folders: readonly string[]): string {
  const quoted = folders.map((folder) => `ReadWritePaths=${quoteForSystemd(folder)}\n`)
  return `[Service]\n${quoted.join('')}`
}
