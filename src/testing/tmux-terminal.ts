import { execFile } from 'node:child_process'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A shell in a real terminal of its own tmux server, ended with the test. */
export interface TmuxTerminal {
  /** Types text or presses keys by tmux's names (`Enter`, `C-c`, `PageDown`). */
  press(...keys: readonly string[]): Promise<void>
  /** The terminal's content, one string per row. */
  screen(): Promise<readonly string[]>
  /** The same with the escape sequences of colours and other looks. */
  styledScreen(): Promise<string>
  /** Whether the program has enabled mouse reports, with cells as numbers. */
  hasMouse(): Promise<boolean>
  resize(columns: number, rows: number): Promise<void>
  /** Closes the terminal's window while the program in it runs. */
  close(): Promise<void>
  /** Waits until the screen matches, at most `timeoutMs`; fails with the last screen. */
  waitFor(pattern: RegExp, timeoutMs?: number): Promise<readonly string[]>
}

export async function openTerminal(
  context: Pick<TestContext, 'after'>,
  options: { readonly columns: number; readonly rows: number; readonly directory: string },
): Promise<TmuxTerminal> {
  const server = `dsc-test-${process.pid}-${Math.random().toString(36).slice(2)}`
  const tmux = async (...words: string[]) =>
    (await run('tmux', ['-L', server, '-u', '-f', '/dev/null', ...words])).stdout
  context.after(async () => {
    await tmux('kill-server').catch(() => {})
  })
  await tmux(
    'new-session',
    '-d',
    '-x',
    String(options.columns),
    '-y',
    String(options.rows),
    '-c',
    options.directory,
    'env LANG=C.UTF-8 TERM=screen-256color PS1=ready: sh -m',
  )
  const terminal: TmuxTerminal = {
    async press(...keys) {
      await tmux('send-keys', ...keys)
    },
    async screen() {
      return (await tmux('capture-pane', '-p')).replace(/\n$/, '').split('\n')
    },
    styledScreen: () => tmux('capture-pane', '-p', '-e'),
    async hasMouse() {
      const flags = await tmux('display-message', '-p', '#{mouse_standard_flag}#{mouse_sgr_flag}')
      return flags.trim() === '11'
    },
    async resize(columns, rows) {
      await tmux('resize-window', '-x', String(columns), '-y', String(rows))
    },
    async close() {
      await tmux('kill-server')
    },
    async waitFor(pattern, timeoutMs = 60_000) {
      const endMs = Date.now() + timeoutMs
      for (;;) {
        const rows = await terminal.screen()
        if (pattern.test(rows.join('\n'))) return rows
        if (Date.now() > endMs) {
          throw new Error(`expected ${pattern} within ${timeoutMs} ms, found:\n${rows.join('\n')}`)
        }
        await sleep(50)
      }
    },
  }
  await terminal.waitFor(/ready:/)
  return terminal
}
