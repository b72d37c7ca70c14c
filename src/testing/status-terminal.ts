import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openCacheRoot } from '../cache/open-cache-root.js'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { DSC } from './dsc-processes.js'
import { fillRecord } from './example-record.js'
import { temporaryDirectory } from './temporary-directory.js'
import { openTerminal, type TmuxTerminal } from './tmux-terminal.js'

/** Prints what a program could leave changed in a terminal; `cooked` = as the shell had it. */
export const STTY = `echo state: $(stty -a | grep -q -- '-icanon' && echo raw || echo cooked)`

/** A folder with a cache and a record of `copies`. */
export async function openExample(context: TestContext, copies: number) {
  const directory = await temporaryDirectory(context)
  await mkdir(join(directory, 'cache'))
  await writeFile(
    join(directory, 'dsc.yaml'),
    'record: sqlite:record.db\nnode: gpu-01\ncache:\n  root: cache\n  maxDatasets: 40\n',
  )
  await openCacheRoot(join(directory, 'cache'), { hasCopies: async () => false })
  const record = await openSqliteRecord(join(directory, 'record.db'))
  context.after(() => record.close())
  const stagings = await fillRecord(record, { copies, nodes: 2, stagings: 1, nowMs: Date.now() })
  return { directory, record, stagings }
}

/** The live screen of such a record in a terminal. */
export async function openStatus(context: TestContext, copies: number, columns = 80, rows = 24) {
  const example = await openExample(context, copies)
  const terminal = await openTerminal(context, { columns, rows, directory: example.directory })
  await terminal.press(`exec 2>&1; clear; echo before; ${DSC.join(' ')} status; echo rc=$?`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  return { ...example, terminal }
}

/** Fails unless the status has ended and the terminal is as it was before. */
export async function checkTerminalIsBack(terminal: TmuxTerminal): Promise<void> {
  const screen = await terminal.waitFor(/rc=\d+/)
  assert.match(screen.join('\n'), /before/, 'the main screen is back')
  assert.doesNotMatch(screen.join('\n'), /DATASET/, 'nothing of the status is left')
  assert.equal(await terminal.hasMouse(), false, 'the mouse is the terminal’s again')
  await terminal.press(STTY, 'Enter')
  await terminal.waitFor(/state: cooked/)
}
