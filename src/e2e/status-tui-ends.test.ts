import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findProcess } from '../platform/processes.js'
import { DSC } from '../testing/dsc-processes.js'
import { needs } from '../testing/needs.js'
import { checkTerminalIsBack, openExample, openStatus, STTY } from '../testing/status-terminal.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { openTerminal } from '../testing/tmux-terminal.js'
import { waitFor } from '../testing/world.js'

const CRASHING = fileURLToPath(new URL('../testing/example-status-screen.js', import.meta.url))
// In CI a missing tmux is a failure: these tests are the only ones with a real terminal.
const skip = needs('tmux', 'tmux')

test('Ctrl-C gives the terminal back', { skip }, async (context) => {
  const { terminal } = await openStatus(context, 5)
  await terminal.press('C-c')
  await checkTerminalIsBack(terminal)
})

test('SIGTERM gives the terminal back and ends by the signal', {
  skip,
}, async (context) => {
  const { terminal, directory } = await openExample(context, 5).then(async (example) => ({
    ...example,
    terminal: await openTerminal(context, { columns: 80, rows: 24, directory: example.directory }),
  }))
  await terminal.press(`clear; echo before; ${DSC.join(' ')} status & echo $! > pid; fg; echo rc=$?`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  process.kill(Number(await readFile(join(directory, 'pid'), 'utf8')), 'SIGTERM')
  await checkTerminalIsBack(terminal)
  assert.match((await terminal.screen()).join('\n'), /stopped by SIGTERM[\s\S]*rc=143/)
})

test('a terminal that is closed ends the status without a crash', { skip }, async (context) => {
  const { directory } = await openExample(context, 5)
  const terminal = await openTerminal(context, { columns: 80, rows: 24, directory })
  const command = `echo $$ >pid; exec ${DSC.join(' ')} status 2>error.txt`
  await terminal.press(`sh -c '${command}'`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  const pid = Number(await readFile(join(directory, 'pid'), 'utf8'))
  await terminal.close()
  await waitFor('it to end', () => findProcess(pid) === undefined)
  assert.doesNotMatch(await readFile(join(directory, 'error.txt'), 'utf8'), /EIO|at .*node:/)
})

test('Ctrl-Z gives the terminal to the shell, and fg draws the status again', { skip }, async (context) => {
  const { terminal } = await openStatus(context, 5)
  await terminal.press('C-z')
  await terminal.waitFor(/Stopped|Suspended/)
  assert.equal(await terminal.hasMouse(), false)
  await terminal.press(STTY, 'Enter')
  await terminal.waitFor(/state: cooked/)
  await terminal.press('fg', 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  await waitFor('the mouse', () => terminal.hasMouse())
  await terminal.press('Down')
  await terminal.waitFor(/▶ dataset-0001/)
  await terminal.press('q')
  await terminal.waitFor(/rc=\d+/)
})

for (const how of ['component', 'timer']) {
  test(`a ${how} that throws gives the terminal back before the error is printed`, {
    skip,
  }, async (context) => {
    const directory = await temporaryDirectory(context)
    const terminal = await openTerminal(context, { columns: 80, rows: 40, directory })
    await terminal.press(`clear; echo before; ${process.execPath} ${CRASHING} ${how}; echo rc=$?`, 'Enter')
    await terminal.waitFor(/▶ webdata/)
    await writeFile(join(directory, 'throw'), '')
    await checkTerminalIsBack(terminal)
    const screen = (await terminal.screen()).join('\n')
    assert.match(screen, /rc=[1-9]/)
    assert.match(screen, new RegExp(`Error: a ${how} threw`), 'the error is on the main screen')
  })
}
