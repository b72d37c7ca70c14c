import { availableParallelism } from 'node:os'
import { DscError } from '../../failure/dsc-error.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import type { ListedFile } from '../list-folder.js'
import { concatTables } from '../make-table.js'
import { openSampleTable, tableFiles } from '../sample-table.js'
import type { IndexedSamples, IndexRequest, ShardFormat } from './format.js'
import type { TarIndexJob, TarIndexReply } from './index-shards.js'

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
  const replies = await runAll(
    groups.map((group) => ({
      request: { root: request.root, onDamage: request.onDamage, files: group },
      format,
    })),
    threadCount,
    (done) => request.onProgress?.(Math.floor((files.length * done) / groups.length), files.length),
  )
  if (replies === undefined) return undefined
  const paths = files.map(({ path }) => path)
  return {
    table: concatTables(
      replies.map(({ table }) => openSampleTable(table)),
      tableFiles({ format }, paths),
    ),
    damaged: replies.flatMap(({ damaged }) => damaged),
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

/** Returns replies in the order of the jobs; undefined as soon as one is `not-single`. */
function runAll(
  jobs: readonly TarIndexJob[],
  threadCount: number,
  onDone: (count: number) => void,
): Promise<readonly Indexed[] | undefined> {
  const threads: BackgroundThread<TarIndexJob, TarIndexReply>[] = []
  const replies: Indexed[] = []
  const { promise, resolve, reject } = Promise.withResolvers<readonly Indexed[] | undefined>()
  let next = 0
  let done = 0
  const begin = () => {
    let at = next++
    const thread = new BackgroundThread<TarIndexJob, TarIndexReply>(
      new URL('../../tar-index-thread.cjs', import.meta.url),
      {
        data: undefined,
        onFailure: reject,
        onReply(reply) {
          if (reply.kind === 'not-single') return resolve(undefined)
          if (reply.kind !== 'indexed') return reject(failureOf(reply))
          replies[at] = reply
          onDone(++done)
          if (done === jobs.length) resolve(replies)
          at = next++
          if (at < jobs.length) thread.post(jobs[at]!)
        },
      },
    )
    thread.ref()
    thread.post(jobs[at]!)
    threads.push(thread)
  }
  for (let i = 0; i < Math.min(threadCount, jobs.length); i++) begin()
  return promise.finally(() => Promise.all(threads.map((thread) => thread.stop())))
}

function failureOf(reply: Exclude<TarIndexReply, { kind: 'indexed' | 'not-single' }>): Error {
  if (reply.kind === 'broken') return new Error(reply.message)
  const { code, message, hint } = reply.failure
  return new DscError(code, message, { hint })
}
