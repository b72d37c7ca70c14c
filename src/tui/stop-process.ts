/** Time after which a stop signal that had no effect is given up: an orphaned process group is never stopped. */
const STOP_EFFECT_MS = 250

/**
 * Stops this process and its group like Ctrl-Z in a shell does, and resolves when it is continued. The terminal
 * must be handed back before: while raw, it sends no signals itself.
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
