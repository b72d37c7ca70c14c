import type { MessagePort, ResourceLimits, TransferListItem } from 'node:worker_threads'
import { packFailure, unpackFailure, type WireFailure } from '../failure/failure-wire.js'
import { BackgroundThread } from './background-thread.js'

/** A message to a thread: jobs of one event-loop turn, or a word of its user's. */
export type ToJobThread<Job, Word = never> =
  | { readonly kind: 'jobs'; readonly jobs: readonly { readonly id: number; readonly job: Job }[] }
  | { readonly kind: 'word'; readonly word: Word }

/** How one job ended. */
export type JobEnd<Result> =
  | { readonly id: number; readonly value: Result }
  | { readonly id: number; readonly failure: WireFailure }

/** A message from a thread: jobs that ended, and a word for its user. */
export interface FromJobThread<Result, Word = undefined> {
  readonly ends: readonly JobEnd<Result>[]
  readonly word?: Word | undefined
}

interface JobThreadOptions<Word> {
  readonly resourceLimits?: ResourceLimits | undefined
  /** Called with each word of the thread's, before the jobs end that came with it. */
  readonly onWord?: (word: Word) => void
  /** Called after each message. */
  readonly onChange?: () => void
}

interface Waiter<Result> {
  readonly resolve: (value: Result) => void
  readonly reject: (error: Error) => void
}

/** A thread that runs jobs. It keeps its process alive only while jobs run, and starts to load its code at once. */
export class JobThread<Job, Result, ToldWord = never, HeardWord = undefined> {
  readonly #thread: BackgroundThread<ToJobThread<Job, ToldWord>, FromJobThread<Result, HeardWord>>
  readonly #options: JobThreadOptions<HeardWord>
  readonly #waiting = new Map<number, Waiter<Result>>()
  #outbox: { readonly id: number; readonly job: Job }[] = []
  #lastId = 0
  #failure: Error | undefined

  constructor(url: URL, options: JobThreadOptions<HeardWord> = {}) {
    this.#options = options
    this.#thread = new BackgroundThread(url, {
      data: undefined,
      onReply: (message) => this.#hear(message),
      onFailure: (cause: NodeJS.ErrnoException) => {
        const error = new Error(`a thread of jobs ended early: ${cause.message}`, { cause })
        this.#fail(Object.assign(error, { code: cause.code }))
      },
      resourceLimits: options.resourceLimits,
    })
  }

  /** Number of jobs that have not ended. */
  get jobCount(): number {
    return this.#waiting.size
  }

  /** Resolves when the thread is gone. */
  get ended(): Promise<void> {
    return this.#thread.ended
  }

  /** Runs a job; it fails if the thread dies. Jobs of one event-loop turn are sent together. */
  run(job: Job): Promise<Result> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#thread.ref()
      this.#lastId += 1
      this.#waiting.set(this.#lastId, { resolve, reject })
      if (this.#outbox.length === 0) queueMicrotask(() => this.flush())
      this.#outbox.push({ id: this.#lastId, job })
    })
  }

  /** Sends a word, after all jobs so far. */
  tell(word: ToldWord): void {
    this.flush()
    this.#thread.post({ kind: 'word', word })
  }

  /** Ends the thread. Jobs that have not ended fail with `reason`. */
  async stop(reason = new Error('the thread was stopped')): Promise<void> {
    await this.#thread.stop()
    this.#fail(reason)
  }

  /** Sends the jobs so far now, if their caller keeps its own thread busy after this. */
  flush(): void {
    const jobs = this.#outbox
    if (jobs.length === 0) return
    this.#outbox = []
    this.#thread.post({ kind: 'jobs', jobs })
  }

  #hear({ ends, word }: FromJobThread<Result, HeardWord>): void {
    if (word !== undefined) this.#options.onWord?.(word)
    for (const end of ends) {
      const waiter = this.#waiting.get(end.id)
      this.#waiting.delete(end.id)
      if ('failure' in end) waiter?.reject(unpackFailure(end.failure))
      else waiter?.resolve(end.value)
    }
    if (this.#waiting.size === 0) this.#thread.unref()
    this.#options.onChange?.()
  }

  /** Fails the thread's jobs, those to come included; the first cause counts. */
  #fail(cause: Error): void {
    this.#failure ??= cause
    for (const { reject } of this.#waiting.values()) reject(this.#failure)
    this.#waiting.clear()
    this.#thread.unref()
  }
}

/** Returns the thread with the fewest jobs; of several, the first. */
export function leastBusy<Thread extends { readonly jobCount: number }>(threads: readonly Thread[]): Thread {
  return threads.reduce((least, each) => (each.jobCount < least.jobCount ? each : least))
}

/** The part of a thread that `spreadJobs` uses. */
interface Runner<Job, Result> {
  run(job: Job): Promise<Result>
  stop(): Promise<void>
}

/**
 * Runs jobs in up to `threads` threads of their own, one per thread at a time, and passes results to `onResult` with
 * their places. The first failure, of `onResult` too, ends it once running jobs have ended; waiting jobs are not
 * started.
 */
export async function spreadJobs<Job, Result>(
  jobs: readonly Job[],
  options: {
    readonly threads: number
    readonly start: () => Runner<Job, Result>
    readonly onResult: (place: number, result: Result) => void
  },
): Promise<void> {
  const failures = new Map<number, unknown>()
  let next = 0
  const work = async () => {
    const thread = options.start()
    let place = 0
    try {
      while (next < jobs.length && failures.size === 0) {
        place = next++
        options.onResult(place, await thread.run(jobs[place]!))
      }
    } catch (error) {
      failures.set(place, error)
    } finally {
      await thread.stop()
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs.length, options.threads) }, work))
  if (failures.size > 0) throw failures.get(Math.min(...failures.keys())) // the same every time
}

/** The other side of a `JobThread`, in the thread: runs each job as it arrives. */
export function serveJobs<Job, Result, Word = never>(
  port: MessagePort | null,
  run: (job: Job) => Result | Promise<Result>,
  options: {
    readonly onWord?: (word: Word) => void
    /** Returns what to move to the other thread with a result, rather than copy. */
    readonly movedWith?: (result: Result) => readonly TransferListItem[]
  } = {},
): void {
  const serve = async (id: number, job: Job) => {
    try {
      const value = await run(job)
      const message: FromJobThread<Result> = { ends: [{ id, value }] }
      port!.postMessage(message, [...(options.movedWith?.(value) ?? [])])
    } catch (error) {
      port!.postMessage({ ends: [{ id, failure: packFailure(error) }] } satisfies FromJobThread<Result>)
    }
  }
  port?.on('message', (message: ToJobThread<Job, Word>) => {
    if (message.kind === 'word') options.onWord?.(message.word)
    else for (const { id, job } of message.jobs) void serve(id, job)
  })
}
