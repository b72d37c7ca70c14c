import { Worker } from 'node:worker_threads'
import { DscError } from '../failure/dsc-error.js'
import type { ReaderData, ReaderJob, ReaderResult } from './reader-thread.js'

/** Threads that read, copy and shuffle, so that the feed's own thread never waits for a disk. */
export interface ReaderPool {
  run(job: ReaderJob): Promise<ReaderResult>
  close(): Promise<void>
}

interface Thread {
  readonly worker: Worker
  busy: number
}

/** Starts `threads` reader threads (1 or more). */
export function openReaderPool(data: ReaderData, threads: number): ReaderPool {
  const waiting = new Map<
    number,
    { resolve(result: ReaderResult): void; reject(error: Error): void; thread: Thread }
  >()
  let nextId = 0
  let isClosed = false
  const pool: Thread[] = Array.from({ length: threads }, () => {
    const worker = new Worker(new URL('./reader-thread.js', import.meta.url), { workerData: data })
    worker.unref()
    const thread: Thread = { worker, busy: 0 }
    worker.on('message', ({ id, result }: { id: number; result: ReaderResult }) => {
      const waiter = waiting.get(id)
      waiting.delete(id)
      thread.busy--
      if (result.kind === 'failed') waiter?.reject(toFailure(result.code, result.message))
      else waiter?.resolve(result)
    })
    worker.on('error', (error) => {
      for (const [id, waiter] of waiting) {
        if (waiter.thread !== thread) continue
        waiting.delete(id)
        waiter.reject(error as Error)
      }
    })
    return thread
  })
  return {
    run(job) {
      if (isClosed) return Promise.reject(new DscError('FEED_GONE', 'the feed is closing'))
      const thread = pool.reduce((least, each) => (each.busy < least.busy ? each : least))
      thread.busy++
      const id = nextId++
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject, thread })
        thread.worker.postMessage({ id, job })
      })
    },
    async close() {
      isClosed = true
      await Promise.all(pool.map((thread) => thread.worker.terminate()))
      for (const waiter of waiting.values()) waiter.reject(new DscError('FEED_GONE', 'the feed is closing'))
      waiting.clear()
    },
  }
}

function toFailure(code: string, message: string): Error {
  if (code !== 'ENOSPC') return new Error(`a reader thread failed: ${message}`)
  return new DscError('FEED_MEMORY', `the file system of the arena is full: ${message}`, {
    hint: 'a smaller --memory, or a larger /dev/shm (docker run --shm-size)',
  })
}
