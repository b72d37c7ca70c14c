import { findOwnTask } from '../cache/leases/find-own-task.js'
import { identifyCaller } from '../cache/leases/identify-caller.js'
import type { Surroundings } from '../cache/surroundings.js'
import { describeFedTime, type FedTime } from '../model/fed-time.js'
import { isDirectory } from './open-dataset-folder.js'

/**
 * The time between two notes: a twentieth of what has passed, at least one minute and at most five. A feed that is killed
 * loses no more, and a job of a day leaves 400 lines of 200 bytes.
 */
const LEAST_MS = 60_000
const MOST_MS = 300_000

/** Milliseconds until the next note of a feed that began `sinceMs` ago. */
export function planNoteMs(sinceMs: number): number {
  return Math.min(MOST_MS, Math.max(LEAST_MS, sinceMs / 20))
}

/** The name under which a feed's time is noted; undefined for one without a dataset, whose record may not exist. */
export function findNoted(given: {
  readonly target?: string | undefined
  readonly fallback?: string | undefined
  readonly mix?: Readonly<Record<string, number>> | undefined
}): string | undefined {
  const names = [given.target, given.fallback, ...Object.keys(given.mix ?? {})]
  return names.find(
    (name) => name !== undefined && !/^[./]/.test(name) && !name.includes('://') && !isDirectory(name),
  )
}

/** Notes in the record how the trainers of a feed spend their time, until it is closed. */
export class FedTimeRecord {
  readonly #context: Surroundings
  readonly #dataset: string
  readonly #take: () => FedTime | undefined
  readonly #beganAtMs = performance.now()
  /** Sought at once: later, the processes above a feed may have ended. Undefined if the record is away. */
  readonly #task: Promise<string | undefined>
  #timer: NodeJS.Timeout

  constructor(context: Surroundings, dataset: string, take: () => FedTime | undefined) {
    this.#context = context
    this.#dataset = dataset
    this.#take = take
    this.#task = this.#findTask().catch(() => undefined)
    this.#timer = this.#noteLater()
  }

  async #findTask(): Promise<string> {
    const { environment } = this.#context
    const [record, { node }] = await Promise.all([this.#context.openRecord(), this.#context.config()])
    return findOwnTask(identifyCaller({ environment, isOwnProcess: true }), { record, node })
  }

  /** Notes what is left. Never rejects: training does not end for want of a note. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#note()
  }

  #noteLater(): NodeJS.Timeout {
    const note = async () => {
      await this.#note()
      this.#timer = this.#noteLater()
    }
    return setTimeout(() => void note(), planNoteMs(performance.now() - this.#beganAtMs)).unref()
  }

  async #note(): Promise<void> {
    const time = this.#take()
    if (!time) return
    const { report } = this.#context
    try {
      const record = await this.#context.openRecord()
      const { node } = await this.#context.config()
      const task = (await this.#task) ?? (await this.#findTask())
      const place = { node, dataset: this.#dataset, copyId: null, task }
      await record.addEvent({ ...place, ...describeFedTime(time, record.nowMs()) })
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      report.note(`dsc: how long training waited could not be noted in the record: ${why}`)
    }
  }
}
