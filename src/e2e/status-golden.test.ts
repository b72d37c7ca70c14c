import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { needs } from '../testing/needs.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { openTerminal, type TmuxTerminal } from '../testing/tmux-terminal.js'

const EXAMPLE = fileURLToPath(new URL('../testing/example-status-screen.js', import.meta.url))
const skip = needs('tmux', 'tmux')

/** Keys, and what shows that they were heard. */
const STEPS = [
  { keys: [], shows: /▶ webdata/ },
  { keys: ['End', 's'], shows: /▶ dataset-0060/ },
  { keys: ['Home', 'Enter'], shows: /^(?![\s\S]*reading)[\s\S]*Esc back/ },
  { keys: ['Escape'], shows: /▶ dataset-/ },
  { keys: ['g'], shows: /▶ dataset-0001/ },
  { keys: ['2'], shows: /▶ job-4711/ },
  { keys: ['g'], shows: /▶ job-4700/ },
  { keys: ['3'], shows: /▶ 02:58:05/ },
  { keys: ['4'], shows: /▶ gpu-01/ },
  { keys: ['g'], shows: /▶ group:vision/ },
  { keys: ['!'], shows: /dsc why laion-huge/ },
  { keys: [':', 'node g', 'Tab'], shows: /:node gpu-02/ },
  { keys: ['Escape'], shows: /▶ group:vision[\s\S]*q quit/ },
  { keys: ['?'], shows: /any key: closes/ },
] as const

const isUpdating = process.env.UPDATE_GOLDEN === '1'
const PATIENCE_MS = 20_000

/** The screen once it is as expected, or, where it never is, when it has not changed for long. */
async function settle(terminal: TmuxTerminal, shows: RegExp, expected: string | undefined): Promise<string> {
  await terminal.waitFor(shows)
  const patienceMs = isUpdating ? 1000 : PATIENCE_MS
  let screen = ''
  for (let sinceMs = performance.now(); performance.now() - sinceMs < patienceMs; await sleep(50)) {
    const lines = await terminal.screen()
    const now = lines.map((line) => `${line.trimEnd()}\n`).join('')
    if (now === expected) return now
    if (now !== screen) sinceMs = performance.now()
    screen = now
  }
  return screen
}

// `UPDATE_GOLDEN=1` writes src/e2e/golden/screen-<columns>.txt, to be looked at in the diff.
for (const columns of [40, 80, 120, 200]) {
  test(`the live screen in a terminal of ${columns} columns looks as it did`, { skip }, async (context) => {
    const directory = await temporaryDirectory(context)
    const terminal = await openTerminal(context, { columns, rows: 24, directory })
    await terminal.press(`clear; TZ=UTC ${process.execPath} ${EXAMPLE} still; echo rc=$?`, 'Enter')
    const file = new URL(`../../src/e2e/golden/screen-${columns}.txt`, import.meta.url)
    const golden = (await readFile(file, 'utf8')).split(/^=== .*\n/m).slice(1)
    const shown: string[] = []
    for (const [index, { keys, shows }] of STEPS.entries()) {
      if (keys.length > 0) await terminal.press(...keys)
      const screen = await settle(terminal, shows, golden[index])
      if (!isUpdating) assert.equal(screen, golden[index], `after ${keys.join(' ') || 'the start'}`)
      shown.push(`=== ${keys.join(' ')}\n${screen}`)
    }
    if (isUpdating) await writeFile(file, shown.join(''))
  })
}
