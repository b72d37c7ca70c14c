import assert from 'node:assert/strict'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openCacheRoot } from '../cache/open-cache-root.js'
import { findProcess } from '../platform/processes.js'
import { openSqliteRecord } from '../records/sqlite/record-store.js'
import { DSC } from '../testing/dsc-processes.js'
import { advanceStagings, fillRecord } from '../testing/example-record.js'
import { needs } from '../testing/needs.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { openTerminal, type TmuxTerminal } from '../testing/tmux-terminal.js'
import { waitFor } from '../testing/world.js'

const CRASHING = fileURLToPath(new URL('../testing/example-status-screen.js', import.meta.url))
// In CI a missing tmux is a failure: these tests are the only ones with a real terminal.
const skip = needs('tmux', 'tmux')

/** Prints what a program could leave changed in a terminal; `cooked` = as the shell had it. */
const STTY = `echo state: $(stty -a | grep -q -- '-icanon' && echo raw || echo cooked)`

async function openExample(context: TestContext, copies: number) {
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

async function openStatus(context: TestContext, copies: number, columns = 80, rows = 24) {
  const example = await openExample(context, copies)
  const terminal = await openTerminal(context, { columns, rows, directory: example.directory })
  await terminal.press(`exec 2>&1; clear; echo before; ${DSC.join(' ')} status; echo rc=$?`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  return { ...example, terminal }
}

async function checkTerminalIsBack(terminal: TmuxTerminal): Promise<void> {
  const screen = await terminal.waitFor(/rc=\d+/)
  assert.match(screen.join('\n'), /before/, 'the main screen is back')
  assert.doesNotMatch(screen.join('\n'), /DATASET/, 'nothing of the status is left')
  assert.equal(await terminal.hasMouse(), false, 'the mouse is the terminal’s again')
  await terminal.press(STTY, 'Enter')
  await terminal.waitFor(/state: cooked/)
}

test('status fills 80x24, follows a resize to 200x60 and back, and q gives the terminal back', {
  skip,
}, async (context) => {
  const { terminal } = await openStatus(context, 60)
  assert.match((await terminal.screen()).at(-1)!, /q quit/)
  await terminal.resize(200, 60)
  const large = await terminal.waitFor(/Latest events/)
  assert.equal(large.length, 60)
  assert.match(large.at(-1)!, /q quit/)
  assert.match(large.join('\n'), /│ webdata-1 on gpu-/)
  await terminal.resize(80, 24)
  await terminal.waitFor(/^(?![\s\S]*Latest events)[\s\S]*▶ webdata-1/)
  assert.match((await terminal.screen()).at(-1)!, /q quit/)
  await terminal.press('q')
  await checkTerminalIsBack(terminal)
  assert.match((await terminal.screen()).join('\n'), /rc=0/)
})

test('status moves through 1,000 copies, filters them, and keeps its place while data changes', {
  skip,
}, async (context) => {
  const { terminal, record, stagings } = await openStatus(context, 1000)
  await terminal.press('End')
  const before = await terminal.waitFor(/▶ dataset-0999/)
  await record.setLock(
    { dataset: 'dataset-0998' },
    { by: 'ops', reason: 'test', atMs: Date.now() },
    Date.now(),
  )
  await advanceStagings(record, stagings, 5 * 1024 ** 3, Date.now())
  const after = await terminal.waitFor(/^(?![\s\S]*dataset-0998)[\s\S]*▶ dataset-0999/)
  const row = (screen: readonly string[]) => screen.findIndex((line) => line.startsWith('▶'))
  assert.equal(row(after), row(before))
  assert.match(after[row(after)]!, /dataset-0999/)
  await terminal.press('/')
  await terminal.press('-l', '0042')
  await terminal.waitFor(/▶ dataset-0042[\s\S]*filter: 0042/)
  await terminal.press('Escape')
  await terminal.waitFor(/▶ webdata-1/)
})

test('status says which task and process of which host holds which copy since when', {
  skip,
}, async (context) => {
  const { terminal, record } = await openStatus(context, 5)
  const boot = { startTicks: '1', bootId: 'b', pidNamespace: 'n' }
  const holder = { kind: 'process', machine: 'm', host: 'gpu-login-01', pid: 4711, ...boot } as const
  const lease = { task: 'researcher@gpu-login-01:4711', holder, expiresAtMs: null }
  await record.leaseReady({ dataset: 'dataset-0003', node: 'gpu-01', lease }, Date.now() - 2 * 3_600_000)
  await terminal.press('2')
  await terminal.waitFor(/TASK +DATASET +NODE .*SINCE .*HOLDER\n/)
  await terminal.press('/')
  await terminal.press('-l', ':4711')
  await terminal.waitFor(/▶ researcher@gpu-l\S* +dataset-0003 +gpu-01 .*2h .* gpu-login-01:4711/)
  await terminal.press('Enter')
  await terminal.press('Enter')
  await terminal.waitFor(/researcher@gpu-login-01:4711 · process 4711 on gpu-login-01 · since 2h/)
})

test('status with 1,000 copies can be used at 40x10, and looks inside at 200x60', {
  skip,
}, async (context) => {
  const { terminal } = await openStatus(context, 1000, 40, 10)
  const small = await terminal.waitFor(/1 copies 1,001 +2 ✖1 +3 +4\n.*DATASET +STATE\n/)
  assert.equal(small.length, 10)
  assert.match(small.at(-1)!, /\? help +q quit/)
  await terminal.waitFor(/▶ webdata-1 +◐ █/)
  await terminal.press('2', 'Down')
  await terminal.waitFor(/2 leases [\d,]+[\s\S]*▶ job-\d+ +dataset-\d+/)
  await terminal.resize(200, 60)
  await terminal.waitFor(/HOLDER[\s\S]*▶ job-\d+ [\s\S]*LEASES/)
})

test('status shows the progress of a download with its rate and the time that is left', {
  skip,
}, async (context) => {
  const { terminal, record, stagings } = await openStatus(context, 5)
  await terminal.waitFor(/webdata-1 .*43%/)
  await advanceStagings(record, stagings, 2 * 1024 ** 3, Date.now())
  await terminal.waitFor(/webdata-1 .*5[23]% +\d+[smhd]/)
  await terminal.press('Enter')
  await terminal.waitFor(/rate +\d\S* \wiB\/s/)
})

test('status locks and unlocks a copy, and says why it does not evict a leased one', {
  skip,
}, async (context) => {
  const { terminal, record } = await openStatus(context, 5)
  await terminal.press('Down', 'e')
  await terminal.waitFor(/dataset-0001 on gpu-01 stays: kept by leases/)
  await terminal.press('Down', 'Down', 'l')
  await terminal.press('-l', 'for the paper')
  await terminal.press('Enter')
  await terminal.waitFor(/dataset-0002 .* lock/)
  const [locked] = await record.listCopies({ dataset: 'dataset-0002' }, Date.now())
  assert.equal(locked?.lock?.reason, 'for the paper')
  await terminal.press('u')
  await terminal.waitFor(/lock of dataset-0002 on gpu-02 \("for the paper"\)\? y\/N/)
  await terminal.press('y')
  await terminal.waitFor(/unlocked dataset-0002/)
  const [unlocked] = await record.listCopies({ dataset: 'dataset-0002' }, Date.now())
  assert.equal(unlocked?.lock, null)
})

test('status evicts an idle copy of this node only after a yes', { skip }, async (context) => {
  const { terminal, record } = await openStatus(context, 5)
  await terminal.press('Down', 'Down', 'Down', 'Down', 'e')
  await terminal.waitFor(/Evict dataset-0003 from gpu-01 .*y\/N/)
  await terminal.press('n')
  await terminal.waitFor(/not evicted/)
  assert.equal((await record.listCopies({ dataset: 'dataset-0003' }, Date.now())).length, 1)
  await terminal.press('e', 'y')
  await terminal.waitFor(/evicted dataset-0003/)
  assert.equal((await record.listCopies({ dataset: 'dataset-0003' }, Date.now())).length, 0)
})

test('a mouse chooses rows, sorts by a heading, looks inside and scrolls; :mouse leaves it to the terminal', {
  skip,
}, async (context) => {
  const { terminal } = await openStatus(context, 60)
  assert.equal(await terminal.hasMouse(), true)
  const report = async (code: number, column: number, row: number) =>
    terminal.press('-l', `\u001b[<${code};${column + 1};${row + 1}M\u001b[<${code};${column + 1};${row + 1}m`)
  const click = async (text: string) => {
    const screen = await terminal.screen()
    const row = screen.findIndex((line) => line.includes(text))
    await report(0, screen[row]!.indexOf(text), row)
  }
  await click('dataset-0007')
  await terminal.waitFor(/▶ dataset-0007/)
  await report(65, 10, 12)
  await terminal.waitFor(/▶ dataset-0016/)
  await click('SIZE  USED')
  await terminal.waitFor(/by SIZE\b(?! reversed)/)
  await click('SIZE  USED')
  await terminal.waitFor(/by SIZE reversed/)
  await click('2 leases')
  await terminal.waitFor(/TASK +DATASET/)
  await click('4 nodes')
  await terminal.waitFor(/▶ gpu-01/)
  await click('gpu-02')
  await terminal.waitFor(/▶ gpu-02/)
  await click('gpu-02')
  await terminal.waitFor(/nodes › gpu-02 by SIZE reversed[\s\S]*▶ \S+ +gpu-02/)
  const under = (await terminal.screen()).find((line) => line.startsWith('▶'))!
  await click(under)
  await terminal.waitFor(/kept by[\s\S]*HISTORY/)
  await terminal.press('Escape')
  await terminal.waitFor(/▶ \S+ +gpu-02/)
  await terminal.press('-l', ':mouse')
  await terminal.press('Enter')
  await terminal.waitFor(/the mouse marks text/)
  assert.equal(await terminal.hasMouse(), false)
})

test('status looks inside a copy and comes back', { skip }, async (context) => {
  const { terminal } = await openStatus(context, 5)
  await terminal.press('Down', 'Enter')
  await terminal.waitFor(/kept by +1 lease[\s\S]*HISTORY\n.*adopted/)
  await terminal.press('Escape')
  await terminal.waitFor(/▶ dataset-0001/)
})

test('the failure of an action is shown in the last line and changes nothing else', {
  skip,
}, async (context) => {
  const { terminal } = await openStatus(context, 5)
  await terminal.press('p')
  await terminal.press('-l', 'no-such-dataset')
  await terminal.press('Enter')
  const screen = await terminal.waitFor(/no dataset is called no-such-dataset/)
  assert.match(screen.join('\n'), /▶ webdata-1/)
})

test('status says that the record is gone, keeps what it knew, and goes on when it is back', {
  skip,
}, async (context) => {
  const { terminal, directory } = await openStatus(context, 5)
  await rename(join(directory, 'record.db'), join(directory, 'moved.db'))
  const gone = await terminal.waitFor(/unreachable for \d+s, retrying: gone/)
  assert.match(gone.join('\n'), /▶ webdata-1/)
  await rename(join(directory, 'moved.db'), join(directory, 'record.db'))
  await terminal.waitFor(/^ dsc status +1 refused:/)
})

test('status has colours, those of a theme, and none with NO_COLOR', { skip }, async (context) => {
  const { directory } = await openExample(context, 5)
  const terminal = await openTerminal(context, { columns: 80, rows: 24, directory })
  const coloured = /\p{Cc}\[[0-9;]*3[1-6]m/u
  // In CI the library draws without colours.
  await terminal.press(`clear; env -u CI -u NO_COLOR ${DSC.join(' ')} status; echo rc=$?`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  assert.match(await terminal.styledScreen(), coloured)
  await terminal.press('q')
  await terminal.waitFor(/rc=0/)
  // The numbers of the palette: what the screen paints, the terminal's own sixteen colours do not change.
  const painted = /48;5;231m/
  await terminal.press(`clear; env -u CI -u NO_COLOR DSC_THEME=light ${DSC.join(' ')} status`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  assert.match(await terminal.styledScreen(), painted)
  await terminal.press('-l', ':theme terminal')
  await terminal.press('Enter')
  await waitFor('the colours of the terminal', async () => !painted.test(await terminal.styledScreen()))
  await terminal.press('q')
  await terminal.waitFor(/ready:/)
  await terminal.press(`clear; env -u CI NO_COLOR=1 ${DSC.join(' ')} status`, 'Enter')
  await terminal.waitFor(/▶ webdata-1/)
  assert.doesNotMatch(await terminal.styledScreen(), coloured)
})

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
  const endMs = Date.now() + 15_000
  while (findProcess(pid) !== undefined && Date.now() < endMs) await sleep(50)
  assert.equal(findProcess(pid), undefined, 'it has ended')
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
    await checkTerminalIsBack(terminal)
    const screen = (await terminal.screen()).join('\n')
    assert.match(screen, /rc=[1-9]/)
    assert.match(screen, new RegExp(`Error: a ${how} threw`), 'the error is on the main screen')
  })
}
