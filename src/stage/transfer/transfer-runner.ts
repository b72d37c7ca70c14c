import { isDscError } from '../../failure/dsc-error.js'
import type { ObjectFacts } from '../plan/object-facts.js'
import { countUploadParts, guessUploadPartBytes } from '../plan/plan-parts.js'
import { withRetries } from '../retry.js'
import type { Fetcher } from '../source.js'
import { proveByUploadParts } from './prove-by-upload-parts.js'
import { proveParts } from './prove-parts.js'
import { type TransferObject, transferPart, transferWhole } from './transfer.js'
import type { TransferResults, TransferTask } from './transfer-task.js'

interface TransferRunnerOptions {
  readonly fetcher: Fetcher
  readonly stallTimeoutMs: number
  readonly signal: AbortSignal
  /** Takes bytes from the bandwidth and returns how long to wait before more, ms. */
  readonly takeBandwidth: (bytes: number) => number
  readonly onChange: () => void
}

const MAX_MISMATCHES = 2

/** Carries out transfer tasks in this thread, with their retries, and counts. */
export class TransferRunner {
  readonly counts = { receivedBytes: 0, retries: 0, throttled: 0 }
  readonly #options: TransferRunnerOptions

  constructor(options: TransferRunnerOptions) {
    this.#options = options
  }

  run<Kind extends TransferTask['kind']>(
    task: Extract<TransferTask, { kind: Kind }>,
  ): Promise<TransferResults[Kind]>
  run(task: TransferTask): Promise<TransferResults[TransferTask['kind']]> {
    const { fetcher, signal } = this.#options
    switch (task.kind) {
      case 'whole':
        return this.#fetchWhole(task.object)
      case 'part': {
        const { object, part, proofAlgorithm } = task
        return this.#attempt((limits) => transferPart(fetcher, object, part, { ...limits, proofAlgorithm }))
      }
      case 'inspect':
        return this.#inspect(task.object)
      case 'prove': {
        const { object, proof, parts, finished } = task
        return proveParts({ key: object.key, path: object.path, proof, parts, finished, signal })
      }
    }
  }

  async #fetchWhole(object: TransferObject): Promise<TransferResults['whole']> {
    for (let mismatches = 0; ; mismatches += 1) {
      const { digest, verifiedBy } = await this.#attempt((limits) =>
        transferWhole(this.#options.fetcher, object, limits),
      )
      if (verifiedBy !== 'size' || countUploadParts(object.etag) < 2) return { digest, verifiedBy }
      // Uploaded in parts although it is small: the source is asked for their size, and the file read by them.
      const facts = await this.#inspect(object)
      try {
        return { digest, verifiedBy: await proveByUploadParts(object, facts, this.#options.signal) }
      } catch (error) {
        if (!isDscError(error, 'CHECKSUM_MISMATCH') || mismatches === MAX_MISMATCHES) throw error
        this.counts.retries += 1
        this.counts.receivedBytes -= object.sizeBytes
      }
    }
  }

  async #inspect(object: TransferObject): Promise<ObjectFacts> {
    const facts = await this.#attempt((limits) => this.#options.fetcher.inspect({ ...object, ...limits }))
    const uploadParts = countUploadParts(object.etag)
    if (facts.uploadPartBytes !== null || uploadParts < 2) return facts
    const uploadPartBytes = guessUploadPartBytes(object.sizeBytes, uploadParts)
    return { ...facts, uploadPartBytes, isPartSizeGuessed: true }
  }

  #attempt<Value>(
    attempt: (limits: {
      readonly stallTimeoutMs: number
      readonly signal: AbortSignal
      readonly onBytes: (bytes: number) => number
    }) => Promise<Value>,
  ): Promise<Value> {
    const { stallTimeoutMs, signal, takeBandwidth, onChange } = this.#options
    const { counts } = this
    return withRetries(
      async () => {
        let receivedBytes = 0
        const onBytes = (bytes: number) => {
          receivedBytes += bytes
          counts.receivedBytes += bytes
          onChange()
          return takeBandwidth(bytes)
        }
        try {
          return await attempt({ stallTimeoutMs, signal, onBytes })
        } catch (error) {
          counts.receivedBytes -= receivedBytes
          throw error
        }
      },
      {
        signal,
        onRetry: (failure) => {
          counts.retries += 1
          if (failure.code === 'SOURCE_THROTTLED') counts.throttled += 1
        },
      },
    )
  }
}
