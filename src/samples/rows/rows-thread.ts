import { parentPort } from 'node:worker_threads'
import { atEndNow } from '../../failure/closers.js'
import { type FromJobThread, serveJobs } from '../../platform/job-threads.js'
import { MessagePackWriter } from './message-pack.js'
import { packGroup } from './pack-group.js'
import { ParquetFile } from './parquet-file.js'
import { type UnpackJob, unpackFile } from './unpack-file.js'

/** Work for a thread. `inspect` reads a footer. */
export type RowsJob =
  | (Pick<UnpackJob, 'path' | 'shown' | 'columns'> & { readonly kind: 'inspect' })
  | (UnpackJob & { readonly kind: 'unpack' })
  | GroupJob

/** Requests the rows of one row group, counted from 0 among the file's row groups that have rows. */
export type GroupJob = Pick<UnpackJob, 'path' | 'shown' | 'columns'> & {
  readonly kind: 'group'
  readonly group: number
}

/** Facts from a footer about the chosen columns. */
export interface InspectedFile {
  readonly rowCount: number
  /** Number of rows in each row group that has any. */
  readonly groupRows: readonly number[]
  /** Approximate size of the rows, in bytes. */
  readonly unpackedBytes: number
}

export type RowsResult =
  | ({ readonly kind: 'inspect' } & InspectedFile)
  | { readonly kind: 'unpack'; readonly bytes: number }
  | { readonly kind: 'group'; readonly bytes: Uint8Array<ArrayBuffer> }

/** Number of files whose footers are kept: a large footer takes longer to read than a row group. */
const OPEN_FILES = 16
const open = new Map<string, ParquetFile>()

async function run(job: RowsJob): Promise<RowsResult> {
  if (job.kind === 'group') return { kind: 'group', bytes: await readGroup(job) }
  if (job.kind === 'unpack') return { kind: 'unpack', bytes: await unpackFile(job, tellColumn) }
  const file = await ParquetFile.open({ ...job, path: Buffer.from(job.path) })
  using _ = atEndNow(() => file.close())
  const unpackedBytes = file.groups.reduce((sum, group) => sum + group.unpackedBytes, 0)
  const groupRows = file.groups.map(({ rowCount }) => rowCount)
  return { kind: 'inspect', rowCount: file.rowCount, groupRows, unpackedBytes }
}

/** Tells the other side which column the job continues with. */
function tellColumn(what: string): void {
  parentPort!.postMessage({ ends: [], word: what } satisfies FromJobThread<RowsResult, string>)
}

async function readGroup(job: GroupJob): Promise<Uint8Array<ArrayBuffer>> {
  const file = await openOnce(job)
  const group = file.groups[job.group]!
  const writer = new MessagePackWriter(group.unpackedBytes)
  await packGroup(file, group, { writer, onRow() {}, onColumn: tellColumn })
  return writer.written() // its memory is transferred with it
}

/** Opens a file once: a thread reads the files of one feed, which do not change while it lives. */
async function openOnce(job: GroupJob): Promise<ParquetFile> {
  const name = Buffer.from(job.path).toString('latin1')
  const file = open.get(name) ?? (await ParquetFile.open({ ...job, path: Buffer.from(job.path) }))
  open.delete(name)
  open.set(name, file)
  const [oldest] = open
  if (open.size > OPEN_FILES && oldest) {
    open.delete(oldest[0])
    oldest[1].close()
  }
  return file
}

serveJobs(parentPort, run, {
  movedWith: (result) => (result.kind === 'group' ? [result.bytes.buffer] : []),
})
