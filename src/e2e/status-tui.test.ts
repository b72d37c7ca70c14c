import assert from 'node:assert/strict'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { DSC } from '../testing/dsc-processes.js'
import { advanceStagings } from '../testing/example-record.js'
import { needs } from '../testing/needs.js'
import { checkTerminalIsBack, openExample, openStatus } from '../testing/status-terminal.js'
import { openTerminal } from '../testing/tmux-terminal.js'
import { waitFor } from '../testing/world.js'

// In CI a missing tmux is a failure: these tests are the only ones with a real terminal.
const skip = needs('tmux', 'tmux')

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
  await waitFor('the mouse', () => terminal.hasMouse())
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
  await waitFor('the mouse to be left alone', async () => !(await terminal.hasMouse()))
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
