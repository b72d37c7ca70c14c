import { availableParallelism } from 'node:os'
import { JobThread, spreadJobs } from '../../platform/job-threads.js'
import { concatTables } from '../make-table.js'
import type { ListedFile } from '../packed-files.js'
import { openSampleTable, tableFiles } from '../sample-table.js'
import type { IndexedSamples, IndexRequest, ShardFormat } from './format.js'
import { NotSingle, type TarIndexJob, type TarIndexReply } from './index-shards.js'

const THREAD = new URL('../../tar-index-thread.cjs', import.meta.url)

/** With less than this, threads take longer to start than they save. */
const BYTES_PER_THREAD = 64 * 2 ** 20
/** More groups than threads, so that no thread waits long for the last one, and progress is visible. */
const GROUPS_PER_THREAD = 4

type Indexed = Extract<TarIndexReply, { kind: 'indexed' }>

/** Number of threads that are worth starting. */
export function countIndexThreads(shards: readonly ListedFile[]): number {
  const bytes = shards.reduce((sum, { size }) => sum + size, 0)
  return Math.min(availableParallelism(), shards.length, Math.floor(bytes / BYTES_PER_THREAD))
}

/**
 * Finds the same samples as one thread would, in the same order, with several; undefined if `format` is `member` and
 * some sample is not a single member.
 */
export async function indexTarInThreads(
  format: ShardFormat,
  request: IndexRequest,
  threadCount: number,
): Promise<IndexedSamples | undefined> {
  const { files } = request
  const groups = groupBySize(files, threadCount * GROUPS_PER_THREAD)
  const replies: Indexed[] = []
  let done = 0
  try {
    await spreadJobs(
      groups.map(
        (group): TarIndexJob => ({
          request: { root: request.root, onDamage: request.onDamage, files: group },
          format,
        }),
      ),
      {
        threads: threadCount,
        start: () => new JobThread<TarIndexJob, TarIndexReply>(THREAD),
        onResult(place, reply) {
          if (reply.kind === 'not-single') throw new NotSingle()
          replies[place] = reply
          request.onProgress?.(Math.floor((files.length * ++done) / groups.length), files.length)
        },
      },
    )
  } catch (error) {
    if (error instanceof NotSingle) return undefined
    throw error
  }
  const paths = files.map(({ path }) => path)
  return {
    table: concatTables(
      replies.map(({ table }) => openSampleTable(table)),
      tableFiles({ format }, paths),
    ),
    damaged: replies.flatMap(({ damaged }) => damaged),
    leftOut: replies.flatMap(({ leftOut = [] }) => leftOut),
  }
}

/** Groups neighboring files, with about the same number of bytes in each group. */
export function groupBySize(files: readonly ListedFile[], count: number): readonly (readonly ListedFile[])[] {
  const total = files.reduce((sum, { size }) => sum + size, 0)
  const groups: ListedFile[][] = []
  let bytes = 0
  for (const file of files) {
    // Assigned by the file's middle, so that no group is too large by more than a file.
    const at = Math.min(count - 1, Math.floor((count * (bytes + file.size / 2)) / Math.max(1, total)))
    groups[at] ??= []
    groups[at].push(file)
    bytes += file.size
  }
  return groups.filter((group) => group !== undefined)
}
