// Lists rows of Parquet files that are unpacked: how long it takes, and how much memory. Rows themselves are not read
// for that, so they are holes here; their indexes are what unpacking writes.
//   node scripts/bench/index-rows.mjs 100000000     (after npm run build)
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { indexSamples } from '../../dist/samples/index-samples.js'
import { formatRowsIndex } from '../../dist/samples/rows/rows-index.js'
import { rowsPathsOf } from '../../dist/samples/rows/rows-paths.js'

const ROWS_PER_FILE = 1_000_000
const ROW_BYTES = 200
const count = Number(process.argv[2] ?? 10_000_000)
const isChild = process.argv[3] !== undefined
const folder = process.argv[3] ?? mkdtempSync(join(tmpdir(), 'dsc-index-rows-'))
const [data, rows] = [join(folder, 'data'), join(folder, 'rows')]

function writeFiles() {
  mkdirSync(data)
  mkdirSync(rows)
  for (let file = 0; file * ROWS_PER_FILE < count; file++) {
    const fileCount = Math.min(ROWS_PER_FILE, count - file * ROWS_PER_FILE)
    const name = `train-${String(file).padStart(5, '0')}.parquet`
    writeFileSync(join(data, name), 'not read: its index is there')
    const { size, mtimeMs } = statSync(join(data, name))
    const paths = rowsPathsOf(rows, name, 'rows')
    const lengths = new Uint32Array(fileCount).fill(ROW_BYTES)
    const crcs = Uint32Array.from({ length: fileCount }, (_, row) => Math.imul(row + file, 0x9e3779b1) >>> 0)
    const rowsBytes = fileCount * ROW_BYTES
    writeFileSync(paths.index, formatRowsIndex({ lengths, crcs, rowsBytes }, { size, mtimeMs }))
    writeFileSync(paths.rows, '')
    truncateSync(paths.rows, rowsBytes)
  }
}

const memoryMib = (name) =>
  Number(/(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8').split(`${name}:`)[1])[1]) / 1024

if (!isChild) {
  // Written by another process: what that takes is not the list's.
  const { execFileSync } = await import('node:child_process')
  try {
    writeFiles()
    execFileSync(process.execPath, [import.meta.filename, String(count), folder], { stdio: 'inherit' })
  } finally {
    rmSync(folder, { recursive: true })
  }
} else {
  const place = { writePath: rows, readPath: rows, makeRoom: async () => {} }
  const openPlace = async () => ({ ...place, settle: async () => {}, close() {} })
  const beganMs = performance.now()
  const reading = { kind: 'unpacked' }
  const { table } = await indexSamples(data, { cacheFolder: undefined, rows: { reading, openPlace } })
  const seconds = (performance.now() - beganMs) / 1000
  const gib = (mib) => `${(mib / 1024).toFixed(2)} GiB`
  console.log(
    `${table.count.toLocaleString('en')} rows: ${seconds.toFixed(1)} s, list ${gib(table.bytes.length / 2 ** 20)}, ` +
      `memory ${gib(memoryMib('VmRSS'))} after it, ${gib(memoryMib('VmHWM'))} at most`,
  )
}
