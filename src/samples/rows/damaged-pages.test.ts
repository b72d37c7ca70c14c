import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parquetMetadata } from 'hyparquet'
import { isDscError } from '../../failure/dsc-error.js'
import { createRandomStream } from '../../feed/plan/random.js'
import { PARQUET_FIXTURES } from '../../testing/parquet-files.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { RowsThread } from './rows-threads.js'

const SEED = Number(process.env.DSC_TEST_SEED ?? 19)
/** Number of damaged files of each kind. */
const ROUNDS = Number(process.env.DSC_TEST_ROUNDS ?? 150)
/** How long a decoder may run on a crafted page before it is given up by name, in ms. */
const PATIENCE_MS = 5000
/** Maximum length of the fixtures' page headers, in bytes. */
const HEADER_BYTES = 40
/** Maximum memory of this process: headers promise up to 2 GiB for pages of some bytes. */
const MOST_MEMORY_MIB = 2048

type Below = (bound: number) => number

/** A file, and where columns of row groups in it have a page of one kind. */
interface PagesOf {
  readonly name: string
  readonly bytes: Buffer
  readonly footerAt: number
  readonly dictionaries: readonly number[]
  readonly pages: readonly number[]
}

const FILES = readdirSync(PARQUET_FIXTURES)
  .filter((name) => name.endsWith('.parquet') && name !== 'no-rows.parquet')
  .map((name): PagesOf => {
    const bytes = readFileSync(join(PARQUET_FIXTURES, name))
    const columns = parquetMetadata(new Uint8Array(bytes).buffer).row_groups.flatMap((group) => group.columns)
    const offsets = (of: 'dictionary_page_offset' | 'data_page_offset') =>
      columns.flatMap(({ meta_data: column }) => (column?.[of] ? [Number(column[of])] : []))
    return {
      name,
      bytes,
      footerAt: bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8),
      dictionaries: offsets('dictionary_page_offset'),
      pages: offsets('data_page_offset'),
    }
  })

const pick = <T>(list: readonly T[], below: Below): T => list[below(list.length)]!

/** Variable-length numbers likely to break headers: 0, -1, 2^31 - 1 and -2^31 in zigzag, and one that never ends. */
const NUMBERS = ['00', '01', 'feffffff0f', 'ffffffff0f', 'ffffffffffffffffffff']

/** Overwrites some bytes of a page's header, perhaps one of its numbers; the footer stays as it is. */
function breakHeader({ bytes, footerAt }: PagesOf, at: number, below: Below): Buffer {
  const damaged = Buffer.from(bytes)
  for (let changes = 1 + below(3); changes > 0; changes -= 1) {
    const place = at + below(HEADER_BYTES)
    if (below(2) === 0) Buffer.from(pick(NUMBERS, below), 'hex').copy(damaged, place)
    else damaged[place] = below(256)
  }
  bytes.copy(damaged, footerAt, footerAt)
  return damaged
}

for (const { what, damage } of [
  {
    what: 'page headers',
    damage: (file: PagesOf, below: Below) => breakHeader(file, pick(file.pages, below), below),
  },
  {
    what: 'dictionary pages',
    damage: (file: PagesOf, below: Below) => {
      const { dictionaries, pages } = file
      const at = pick(dictionaries.length > 0 ? dictionaries : pages, below)
      return breakHeader(file, at + below(2) * HEADER_BYTES, below)
    },
  },
  {
    what: 'column chunks that end early',
    damage: ({ bytes, footerAt, pages }: PagesOf, below: Below) => {
      const from = Math.min(pick(pages, below) + below(60), footerAt - 1)
      const to = Math.min(from + 1 + below(2000), footerAt)
      const missing = below(2) === 0 ? Buffer.alloc(0) : Buffer.alloc(to - from)
      return Buffer.concat([bytes.subarray(0, from), missing, bytes.subarray(to)])
    },
  },
])
  test(`${ROUNDS} Parquet files with damaged ${what} are read, or refused by file, row group and column`, async (context) => {
    const folder = makeTestFolder(context)
    const below = startRandom(context)
    let thread = new RowsThread(PATIENCE_MS)
    context.after(() => thread.stop())
    const counts = { read: 0, refused: 0, givenUp: 0 }
    for (let round = 0; round < ROUNDS; round += 1) {
      const file = FILES[round % FILES.length]!
      const path = join(folder, 'damaged.parquet')
      writeFileSync(path, damage(file, below))
      try {
        await thread.run({
          kind: 'unpack',
          path: Buffer.from(path),
          shown: file.name,
          columns: undefined,
          origin: { size: 0, mtimeMs: 0 },
          rows: Buffer.from(join(folder, 'rows')),
          index: Buffer.from(join(folder, 'index')),
          part: join(folder, `part-${round}`),
        })
        counts.read += 1
      } catch (error) {
        assert.ok(
          isDscError(error, 'COPY_DAMAGED'),
          `${file.name}, round ${round}: ${(error as Error).stack}`,
        )
        const place =
          /^(\S+) is no Parquet file that can be read: column \w+ of row group \d+( takes|: )/.exec(
            error.message,
          )
        assert.equal(place?.[1], file.name, error.message)
        counts.refused += 1
        if (place?.[2] !== ' takes') continue
        counts.givenUp += 1
        await thread.stop()
        thread = new RowsThread(PATIENCE_MS)
      }
    }
    const memoryMib = readPeakMemoryMib()
    context.diagnostic(`${JSON.stringify(counts)}, at most ${memoryMib.toFixed(0)} MiB`)
    assert.ok(counts.refused > ROUNDS / 4 && counts.read > 0, JSON.stringify(counts))
    assert.ok(memoryMib < MOST_MEMORY_MIB, `${memoryMib} MiB`)
  })

function startRandom(context: TestContext): Below {
  context.diagnostic(`DSC_TEST_SEED=${SEED} DSC_TEST_ROUNDS=${ROUNDS}`)
  const random = createRandomStream(SEED, 0)
  return (bound) => random.nextBelow(bound)
}

function readPeakMemoryMib(): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024
}
