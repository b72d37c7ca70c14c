/** The job of a timer: this installation's `dsc cleanup`, on the cache that it would clean up here and now. */
export interface CleanupCall {
  /** The words that start dsc. */
  readonly dsc: readonly string[]
  /** The dsc.yaml in effect here; without one, the cache is the user's. */
  readonly config: string | undefined
  readonly user: string
}

/** A line for /etc/cron.d: every ten minutes, one at a time, silent unless something fails. */
export function formatCron(call: CleanupCall): string {
  const command = wordsOf(call)
    .map((word) => (/[^\w@:,./+=-]/.test(word) ? `'${word.replaceAll("'", `'\\''`)}'` : word))
    .join(' ')
    .replaceAll('%', '\\%') // in cron, a bare % ends the line
  return `# /etc/cron.d/dsc: keeps the dataset cache of this node in order\n*/10 * * * * ${userOf(call)} ${command} > /dev/null\n`
}

/** A service and a timer for systemd, in the order of their two files. */
export function formatSystemd(call: CleanupCall): string {
  const user = userOf(call)
  return `# /etc/systemd/system/dsc-cleanup.service
[Unit]
Description=Keep the dsc dataset cache of this node in order
After=local-fs.target network-online.target

[Service]
Type=oneshot
${user === 'root' ? '' : `User=${user}\n`}ExecStart=${wordsOf(call).map(quoteForSystemd).join(' ')}
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

/** A word of ExecStart=, which supports quotes and interprets `%`. */
export function quoteForSystemd(word: string): string {
  const text = word.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /[^\w@:,./+=%$-]/.test(text) ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : text
}

function wordsOf({ dsc, config }: CleanupCall): readonly string[] {
  const given = config === undefined ? [] : ['--config', config]
  return [...dsc, 'cleanup', '--quiet', ...given]
}

/** Root cleans up a cache that all users share. */
function userOf({ config, user }: CleanupCall): string {
  return config === undefined ? user : 'root'
}
