/** A line for /etc/cron.d: every ten minutes, as root, one at a time, silent unless something fails. */
export function formatCron(dsc: string): string {
  return `# /etc/cron.d/dsc: keeps the dataset cache of this node in order\n*/10 * * * * root ${process.execPath} ${dsc} cleanup --quiet > /dev/null\n`
}

/** A service and a timer for systemd, in the order of the two files they are to be put into. */
export function formatSystemd(dsc: string): string {
  return `# /etc/systemd/system/dsc-cleanup.service
[Unit]
Description=Keep the dsc dataset cache of this node in order
After=local-fs.target network-online.target

[Service]
Type=oneshot
ExecStart=${process.execPath} ${dsc} cleanup --quiet
Nice=10
IOSchedulingClass=idle

# /etc/systemd/system/dsc-cleanup.timer
# then: systemctl daemon-reload && systemctl enable --now dsc-cleanup.timer
[Unit]
Description=Run dsc cleanup every ten minutes

[Timer]
OnBootSec=2min
OnUnitActiveSec=10min
RandomizedDelaySec=1min

[Install]
WantedBy=timers.target
`
}
