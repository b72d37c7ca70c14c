// Lists rows of Parquet files that are unpacked: how long it takes, and how much memory. Rows themselves are not read
// for that, so they are holes here; their indexes are what unpacking writes. Called with a folder, it lists what is there.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { indexSamples } from '../../../dist/samples/index-samples.js'
import { formatRowsIndex } from '../../../dist/samples/rows/rows-index.js'
import { rowsPathsOf } from '../../../dist/samples/rows/rows-paths.js'
import { memoryOf } from '../harness/processes.mjs'

const ROWS_PER_FILE = 1_000_000
const ROW_BYTES = 200
if (process.argv[1] === import.meta.filename) await list(process.argv[2])

/** One sentence about a list of so many rows. Another process lists them: what it takes to write them is not the list's. */
export function listRows(count) {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-index-rows-'))
  try {
    writeFiles(folder, count)
    return execFileSync(process.execPath, [import.meta.filename, folder], { encoding: 'utf8' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function writeFiles(folder, count) {
  const [data, rows] = [join(folder, 'data'), join(folder, 'rows')]
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

async function list(folder) {
  const rows = join(folder, 'rows')
  const place = {
    writePath: rows,
    readPath: rows,
    makeRoom: async () => {},
    settle: async () => {},
    close() {},
  }
  const reading = { reading: { kind: 'unpacked' }, openPlace: async () => place }
  const beganMs = performance.now()
  const { table } = await indexSamples(join(folder, 'data'), { cacheFolder: undefined, rows: reading })
  const seconds = (performance.now() - beganMs) / 1000
  const gib = (bytes) => `${(bytes / 2 ** 30).toFixed(2)} GiB`
  const [after, most] = ['VmRSS', 'VmHWM'].map((name) => gib(memoryOf(process.pid, name)))
  process.stdout.write(
    `${table.count.toLocaleString('en')} rows: ${seconds.toFixed(1)} s, list ${gib(table.bytes.length)}, memory ${after} after it, ${most} at most\n`,
  )
}
