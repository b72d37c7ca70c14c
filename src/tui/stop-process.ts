/** How long to wait for a stop signal to take effect, ms: an orphaned process group never stops. */
const STOP_EFFECT_MS = 250

/**
 * Stops this process and its group, like Ctrl-Z in a shell, and resolves when it continues. Hand the terminal back
 * before: in raw mode it sends no signals itself.
 */
export async function waitForContinue(): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      process.off('SIGCONT', done)
      resolve()
    }
    const timer = setTimeout(done, STOP_EFFECT_MS)
    process.once('SIGCONT', done)
    // 0: the whole group, so that a shell or npx in front of us sees the stop too.
    process.kill(0, 'SIGTSTP')
  })
}
