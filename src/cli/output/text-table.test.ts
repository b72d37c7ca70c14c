import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { exampleStatus } from '../../testing/example-status.js'
import { formatStatusText } from './status-pieces.js'
import { findTerminalWidth, formatTable } from './text-table.js'

const COLUMNS = [
  { title: 'NAME', minWidth: 6, cell: ([name]: readonly string[]) => name! },
  { title: 'SIZE', align: 'right', cell: ([, size]: readonly string[]) => size! },
] as const

test('a table without a terminal is as wide as what it holds', () => {
  assert.equal(
    formatTable(
      [
        ['a long name', '1 GiB'],
        ['b', '12 GiB'],
      ],
      COLUMNS,
      undefined,
    ),
    'NAME           SIZE\na long name   1 GiB\nb            12 GiB',
  )
})

test('on a terminal names are cut, numbers never', () => {
  assert.equal(
    formatTable(
      [
        ['a long name', '1 GiB'],
        ['b', '12 GiB'],
      ],
      COLUMNS,
      14,
    ),
    'NAME      SIZE\na lon…   1 GiB\nb       12 GiB',
  )
})

test('numbers stay whole even where the terminal is too narrow for them', () => {
  assert.match(formatTable([['a long name', '1023 MiB/1.02 TiB']], COLUMNS, 10), /1023 MiB\/1\.02 TiB$/)
})

test('a status fits a terminal of 80 cells', async () => {
  const text = await formatExample(exampleStatus(20))
  for (const line of text.split('\n')) assert.ok(line.length <= 80, line)
  assert.match(text, /^NODE .*\ngpu-01 +11\/40 /)
  assert.match(text, /\nSTAGING .*\nwebdata +gpu-01 ← gpu-02 +8\/20 GiB +40% +job-4800/)
  assert.match(text, /\nHELD .*\ndataset-0001 +1 +gpu-01\*\ndataset-0002 +1 +gpu-02\n/)
  assert.match(text, /\nwebdata +0 +gpu-01 \(40%\)/)
})

test('a job that was refused is not said to wait: it has ended', async () => {
  const asked = { dataset: 'flowers', node: 'gpu-01', sinceMs: NOW_MS - 5000 }
  const waits = [
    { ...asked, kind: 'room', task: 'late', reason: 'no room\n  held: cats' },
    { ...asked, kind: 'staging', task: 'early', reason: 'gpu-01 stages it' },
  ] as const
  const text = await formatExample({ ...exampleStatus(1), takenAtMs: NOW_MS, waits })
  assert.match(text, /\nWAITS +FOR .*\nearly +flowers +gpu-01 +5s +gpu-01 stages it\n\n/)
  assert.match(text, /\nREFUSED +WANTED .*\nlate +flowers +gpu-01 +5s +no room\n/)
})

test('a status of nothing says so', async () => {
  const empty = { ...exampleStatus(0), copies: [], transfers: [], waits: [], nodes: [] }
  assert.equal(await formatExample({ ...empty, takenAtMs: NOW_MS }), 'No copies.\n')
})

async function formatExample(summary: StatusSnapshot): Promise<string> {
  const record = { listCopies: async () => summary.copies } // one page
  let text = ''
  for await (const piece of formatStatusText({ record, filter: {}, summary }, 80)) text += piece
  return text
}

test('a terminal that does not say how wide it is has 80 cells', (context) => {
  const before = Object.getOwnPropertyDescriptors(process.stdout)
  context.after(() => {
    for (const name of ['isTTY', 'columns'] as const)
      if (before[name]) Object.defineProperty(process.stdout, name, before[name])
      else Reflect.deleteProperty(process.stdout, name)
  })
  const say = (columns: number) => {
    Object.defineProperty(process.stdout, 'isTTY', { value: true, configurable: true })
    Object.defineProperty(process.stdout, 'columns', { value: columns, configurable: true })
    return findTerminalWidth()
  }
  assert.deepEqual([say(0), say(40)], [80, 40])
})
