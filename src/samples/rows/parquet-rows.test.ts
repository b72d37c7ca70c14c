import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { PARQUET_FIXTURES } from '../../testing/parquet-files.js'
import { MessagePackWriter } from './message-pack.js'
import { packGroup } from './pack-group.js'
import { ParquetFile } from './parquet-file.js'
import { type RowValue, readRow } from './read-row.js'

const FOLDER = PARQUET_FIXTURES
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.parquet'))
const EXPECTED = JSON.parse(readFileSync(join(FOLDER, 'rows.json'), 'utf8')) as Record<string, unknown>

async function readRows(path: string, columns?: readonly string[]) {
  const file = await ParquetFile.open({ path, shown: path, columns })
  const rows: Record<string, RowValue>[] = []
  const writer = new MessagePackWriter()
  const onRow = () => {
    rows.push(readRow(writer.written()))
    writer.clear()
  }
  try {
    for (const group of file.groups) await packGroup(file, group, { writer, onRow, onColumn() {} })
  } finally {
    file.close()
  }
  return rows
}

/** Converts a value to its form in rows.json. */
function plain(value: RowValue): unknown {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('hex') }
  if (value instanceof Date) return { text: value.toISOString() }
  if (typeof value === 'bigint') return { number: String(value) }
  if (typeof value === 'number' && !Number.isFinite(value)) return { number: String(value) }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
}

/** Values read by pyarrow, as far as this reader returns them: moments to the millisecond, dates and such as text. */
function expected(name: string): unknown {
  const rows = EXPECTED[name]
  return typeof rows === 'string' ? expected(rows) : coarsen(rows)
}

function coarsen(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(coarsen)
  if (typeof value !== 'object' || value === null) return value
  const text = Object.keys(value).length === 1 ? (value as { text?: string }).text : undefined
  if (text?.includes('T')) return { text: new Date(text).toISOString() }
  if (text !== undefined) return text
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, coarsen(member)]))
}

for (const name of FILES) {
  test(`rows of ${name} are what pyarrow reads`, async () => {
    assert.deepEqual((await readRows(join(FOLDER, name))).map(plain), expected(name))
  })
}

test('only chosen columns are read, in their order', async () => {
  const path = join(FOLDER, 'nested.parquet')
  const rows = await readRows(path, ['map', 'list'])
  assert.deepEqual(Object.keys(rows[1]!), ['map', 'list'])
  await assert.rejects(readRows(path, ['map', 'colour']), (error) => {
    assert.ok(isDscError(error, 'USAGE'))
    assert.match(`${error.message} ${error.hint}`, /no column colour.*columns: list, lists/)
    return true
  })
})

test('bytes that are no row are refused by name', () => {
  for (const bytes of [[], [0x05], [0x81], [0x81, 0xa1], [0x91, 0x01], [0xc1], [0x80, 0x80], [0x81, 0xc0]])
    assert.throws(() => readRow(Uint8Array.from(bytes)), { code: 'FEED_PROTOCOL' })
})

for (const { days, text } of [
  { days: 0, text: '1970-01-01' },
  { days: -719_163, text: '0000-12-31' },
  { days: 2_932_897, text: '+010000-01-01' },
  { days: 2 ** 31 - 1, text: '+5881580-07-11' },
  { days: -(2 ** 31), text: '-5877641-06-23' },
  { days: 11_016, text: '2000-02-29' },
])
  test(`day ${days} is ${text}, whether or not a Date can hold it`, () => {
    const bytes = Buffer.from([0x81, 0xa1, 0x64, 0xc7, 4, 2, 0, 0, 0, 0])
    bytes.writeInt32BE(days, 6)
    assert.equal(readRow(bytes).d, text)
  })
