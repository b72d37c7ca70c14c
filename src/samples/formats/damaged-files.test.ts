import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { createRandomStream } from '../../feed/plan/random.js'
import type { FormatName } from '../../model/sample-formats.js'
import { readableLines, readLinesNaively } from '../../testing/naive-lines.js'
import { PARQUET_FIXTURES } from '../../testing/parquet-files.js'
import { readAllSamples } from '../../testing/read-all-samples.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { fromText } from '../byte-path.js'
import { RowsThread } from '../rows/rows-threads.js'
import type { IndexedSamples, IndexRequest } from './format.js'
import { FORMATS } from './formats.js'

const SEED = Number(process.env.DSC_TEST_SEED ?? 19)
/** Number of damaged files of each format. */
const ROUNDS = Number(process.env.DSC_TEST_ROUNDS ?? 3000)
/** Number of files to index at once. */
const TOGETHER = 100
const FIXTURES = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'formats')

type Below = (bound: number) => number

function startRandom(context: TestContext): Below {
  context.diagnostic(`DSC_TEST_SEED=${SEED} DSC_TEST_ROUNDS=${ROUNDS}`)
  const random = createRandomStream(SEED, 0)
  return (bound) => random.nextBelow(bound)
}

/** Numbers likely to break headers. */
const NUMBERS = [0, 1, 2, 7, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff]

/** Changes one to three places, three out of four times before `headBytes`; or cuts, removes or repeats a piece. */
function damage(bytes: Buffer, headBytes: number, below: Below): Buffer {
  let damaged = Buffer.from(bytes)
  for (let changes = 1 + below(3); changes > 0 && damaged.length > 8; changes -= 1) {
    const at = below(below(4) === 0 ? damaged.length : Math.min(headBytes, damaged.length))
    const piece = damaged.subarray(at, at + 1 + below(600))
    switch (below(7)) {
      case 0:
        damaged.writeUInt32LE(NUMBERS[below(NUMBERS.length)]!, Math.min(at - (at % 4), damaged.length - 4))
        break
      case 1:
        damaged = damaged.subarray(0, at)
        break
      case 2:
        damaged = Buffer.concat([damaged.subarray(0, at), damaged.subarray(at + piece.length)])
        break
      case 3:
        damaged = Buffer.concat([
          damaged.subarray(0, at + piece.length),
          piece,
          damaged.subarray(at + piece.length),
        ])
        break
      default:
        damaged[at] = below(3) === 0 ? damaged[at]! ^ (1 << below(8)) : below(256)
    }
  }
  return damaged
}

/** Makes a request to index the folder's content. */
function ask(root: string, onDamage: IndexRequest['onDamage']): IndexRequest {
  const names = readdirSync(root).filter((name) => name !== 'index.json')
  const files = names.toSorted().map((name) => {
    const { size, mtimeMs } = statSync(join(root, name))
    return { path: fromText(name), size, mtimeMs }
  })
  return { root: fromText(root), files, onDamage }
}

async function attempt(format: FormatName, request: IndexRequest): Promise<IndexedSamples | Error> {
  try {
    return await FORMATS[format].index(request)
  } catch (error) {
    assert.ok(isDscError(error, 'COPY_DAMAGED', 'USAGE'), (error as Error).stack)
    return error
  }
}

function makeTar(folder: string, form: string): void {
  const from = join(folder, 'from')
  mkdirSync(from)
  for (let i = 0; i < 12; i++) {
    const long = i % 4 === 0 ? `${'long-name-'.repeat(13)}${i}` : `sample-${i}`
    writeFileSync(join(from, `${long}.txt`), `text ${i}`.repeat(i * 40))
    if (form === 'pax') writeFileSync(join(from, `${long}.cls`), `${i % 3}`)
  }
  const { status } = spawnSync('tar', [
    '-cf',
    join(folder, 'shard.tar'),
    `--format=${form}`,
    '--sort=name',
    '-C',
    from,
    '.',
  ])
  assert.equal(status, 0)
  rmSync(from, { recursive: true })
}

for (const { format, what, name, headBytes, write } of [
  {
    format: 'shards',
    what: 'GNU tar',
    name: 'shard.tar',
    headBytes: 4096,
    write: (to: string) => makeTar(to, 'gnu'),
  },
  {
    format: 'shards',
    what: 'POSIX tar',
    name: 'shard.tar',
    headBytes: 4096,
    write: (to: string) => makeTar(to, 'pax'),
  },
  {
    format: 'mds',
    what: 'MDS',
    name: 'shard.00001.mds',
    headBytes: 500,
    write: (to: string) => copyFixture(to, 'mds'),
  },
  {
    format: 'litdata',
    what: 'LitData',
    name: 'chunk-0-1.bin',
    headBytes: 64,
    write: (to: string) => copyFixture(to, 'litdata'),
  },
] as const)
  test(`${ROUNDS} damaged files of ${what} are each read consistently or refused by name`, async (context) => {
    const folder = makeTestFolder(context)
    write(folder)
    const whole = readFileSync(join(folder, name))
    const below = startRandom(context)
    let refused = 0
    for (let done = 0; done < ROUNDS; done += TOGETHER) {
      for (let i = 0; i < TOGETHER; i += 1)
        writeFileSync(join(folder, `${i}.damaged`), damage(whole, headBytes, below))
      const part = await attempt(format, ask(folder, 'skip'))
      if (part instanceof Error) throw part
      readAllSamples({ root: folder, table: part.table })
      const told = part.damaged.map(({ path }) => path)
      assert.ok(told.every((path) => path.endsWith('.damaged')))
      assert.equal(new Set(told).size, told.length)
      const strict = await attempt(format, ask(folder, 'raise'))
      assert.ok(strict instanceof Error && strict.message.startsWith(told[0]!), `${strict}`)
      refused += told.length
    }
    assert.ok(refused > ROUNDS / 4 && refused < ROUNDS, `${refused}`)
  })

for (const format of ['mds', 'litdata'] as const)
  test(`${ROUNDS / 10} damaged files index.json of ${format} are read or refused by name`, async (context) => {
    const folder = makeTestFolder(context)
    copyFixture(folder, format)
    const whole = readFileSync(join(folder, 'index.json'))
    const below = startRandom(context)
    let refused = 0
    for (let round = 0; round < ROUNDS / 10; round += 1) {
      writeFileSync(join(folder, 'index.json'), damage(whole, whole.length, below))
      const found = await attempt(format, ask(folder, 'raise'))
      if (!(found instanceof Error)) continue
      refused += 1
      assert.match(found.message, /index\.json/)
    }
    assert.ok(refused > ROUNDS / 50, `${refused}`)
  })

function copyFixture(to: string, format: string): void {
  cpSync(join(FIXTURES, format), to, { recursive: true })
}

/** Pieces to build texts from. */
const PIECES = [
  '{"a":1}',
  'word',
  '"',
  '""',
  '"',
  ',',
  '\t',
  ' ',
  '\n',
  '\n',
  '\r\n',
  '\r',
  '\uFEFF',
  '\0',
  'é',
  '',
]

for (const { format, delimiter } of [
  { format: 'jsonl', delimiter: undefined },
  { format: 'csv', delimiter: ',' },
  { format: 'tsv', delimiter: '\t' },
] as const)
  test(`${ROUNDS} odd files of ${format} have the records that a naive reader finds, or are refused by name`, async (context) => {
    const root = makeTestFolder(context)
    const below = startRandom(context)
    const dialect = { ...(delimiter && { delimiter }), quote: '"', header: true } as const
    const isSample = (record: string) => (delimiter ? record !== '' : !/^[ \t]*$/.test(record))
    let refused = 0
    for (let done = 0; done < ROUNDS; done += TOGETHER) {
      const texts = Array.from({ length: TOGETHER }, () => pieceTogether(below))
      for (const [i, text] of texts.entries()) writeFileSync(join(root, `${100 + i}.txt`), text)
      const naive = texts.map((text) => readLinesNaively(text, delimiter))
      const indexed = await attempt(format, { ...ask(root, 'skip'), dialect })
      if (indexed instanceof Error) throw indexed
      const found = readAllSamples({ root, table: indexed.table }).map(String)
      assert.deepEqual(
        found,
        naive.flatMap(({ records }) => readableLines(records.filter(isSample), delimiter)),
      )
      const open = naive.flatMap(({ isOpen }, i) => (isOpen ? [`${100 + i}.txt`] : []))
      assert.deepEqual(
        indexed.damaged.map(({ path }) => path),
        open,
      )
      refused += open.length
      const strict = await attempt(format, { ...ask(root, 'raise'), dialect })
      if (delimiter) assert.equal(strict instanceof Error, open.length > 0)
      if (strict instanceof Error)
        assert.match(
          strict.message,
          /^\d+\.txt is damaged at byte \d+: a (quote that nothing closes|line that is no JSON)$/,
        )
    }
    assert.ok(delimiter === undefined || refused > ROUNDS / 20, `${refused}`)
  })

function pieceTogether(below: Below): string {
  return Array.from({ length: below(40) }, () => PIECES[below(PIECES.length)]).join('')
}

test(`${ROUNDS} damaged footers of Parquet are read or refused by name`, async (context) => {
  const root = makeTestFolder(context)
  const path = join(root, 'damaged.parquet')
  const below = startRandom(context)
  const wholes = readdirSync(PARQUET_FIXTURES)
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => readFileSync(join(PARQUET_FIXTURES, name)))
  const thread = new RowsThread(5000)
  context.after(() => thread.stop())
  let refused = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const whole = wholes[round % wholes.length]!
    const footerAt = whole.length - 8 - whole.readUInt32LE(whole.length - 8)
    const footer = damage(whole.subarray(footerAt), whole.length, below)
    writeFileSync(path, Buffer.concat([whole.subarray(0, footerAt), footer]))
    const job = {
      kind: 'inspect',
      path: Buffer.from(path),
      shown: 'damaged.parquet',
      columns: undefined,
    } as const
    try {
      await thread.run(job)
    } catch (error) {
      assert.ok(isDscError(error, 'COPY_DAMAGED', 'USAGE'), (error as Error).stack)
      assert.match(error.message, /^damaged\.parquet/)
      refused += 1
    }
  }
  assert.ok(refused > ROUNDS / 4, `${refused}`)
})
