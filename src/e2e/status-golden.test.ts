import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { hasTmux, openTerminal, type TmuxTerminal } from '../testing/tmux-terminal.js'

const EXAMPLE = fileURLToPath(new URL('../testing/example-status-screen.js', import.meta.url))
const skip = !hasTmux() && !process.env.CI ? 'tmux is not installed' : false

/** Keys, and what shows that they were heard. */
const STEPS = [
  { keys: [], shows: /▶ dataset-0001/ },
  { keys: ['G', 's'], shows: /▶ webdata/ },
  { keys: ['g', 'Enter'], shows: /^(?![\s\S]*reading)[\s\S]*Esc back/ },
  { keys: ['Escape'], shows: /▶ dataset-/ },
  { keys: ['2'], shows: /▶ job-/ },
  { keys: ['3'], shows: /▶ webdata/ },
  { keys: ['5'], shows: /▶ gpu-01/ },
  { keys: ['6'], shows: /▶ job-4711/ },
  { keys: ['7'], shows: /▶ dataset-0001/ },
  { keys: ['8'], shows: /▶ group:vision/ },
  { keys: ['?'], shows: /any key: closes/ },
] as const

/** The screen once it does not change any more. */
async function settle(terminal: TmuxTerminal, shows: RegExp): Promise<readonly string[]> {
  await terminal.waitFor(shows)
  for (let before = ''; ; await sleep(150)) {
    const screen = await terminal.screen()
    if (screen.join('\n') === before) return screen
    before = screen.join('\n')
  }
}

// `UPDATE_GOLDEN=1` writes src/e2e/golden/screen-<columns>.txt, to be looked at in the diff.
for (const columns of [40, 80, 120, 200]) {
  test(`the live screen in a terminal of ${columns} columns looks as it did`, { skip }, async (context) => {
    const directory = await temporaryDirectory(context)
    const terminal = await openTerminal(context, { columns, rows: 24, directory })
    await terminal.press(`clear; TZ=UTC ${process.execPath} ${EXAMPLE} still; echo rc=$?`, 'Enter')
    const shown: string[] = []
    for (const { keys, shows } of STEPS) {
      if (keys.length > 0) await terminal.press(...keys)
      const screen = await settle(terminal, shows)
      assert.equal(screen.length, 24)
      shown.push(`=== ${keys.join(' ')}`, ...screen.map((line) => line.trimEnd()))
    }
    const file = new URL(`../../src/e2e/golden/screen-${columns}.txt`, import.meta.url)
    const text = `${shown.join('\n')}\n`
    if (process.env.UPDATE_GOLDEN === '1') await writeFile(file, text)
    assert.equal(text, await readFile(file, 'utf8'))
  })
}
