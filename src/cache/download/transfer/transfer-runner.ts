import { open } from 'node:fs/promises'
import { isDscError } from '../../../failure/dsc-error.js'
import type { VerifiedBy } from '../../../model/manifest.js'
import { formatDigest } from '../../../proof/digest.js'
import { digestRange } from '../../../proof/digest-range.js'
import type { ObjectFacts } from '../../../proof/object-facts.js'
import { countUploadParts, guessUploadPartBytes } from '../../../proof/plan-parts.js'
import { isOfEtag, type ProofAlgorithm } from '../../../proof/plan-proof.js'
import { planUploadProof, proveByUploadParts } from '../../../proof/prove-by-upload-parts.js'
import { type FinishedPart, PROVEN_ELSEWHERE, proveParts } from '../../../proof/prove-parts.js'
import { withRetries } from '../../../sources/retry.js'
import type { Fetcher } from '../../../sources/source.js'
import type { ByteRange } from '../../arrivals/block-set.js'
import type { AttemptLimits, TransferObject } from './arriving-range.js'
import { type EtagEvidence, EtagJudge } from './etag-judge.js'
import { countLeft } from './file-sink.js'
import type { FileTurns } from './file-turns.js'
import { KeptFolders } from './kept-folders.js'
import { PartTransfer, planPartDigests, RangeTransfer, WholeTransfer } from './transfer.js'
import type { TransferResults, TransferTask } from './transfer-task.js'

/** The inputs of a runner; it reads with `fetcher`. */
export interface TransferRunnerOptions {
  readonly fetcher: Fetcher
  readonly stallTimeoutMs: number
  readonly signal: AbortSignal
  /** Takes bytes from the bandwidth and returns how long to wait before taking more, in ms. */
  readonly takeBandwidth: (bytes: number) => number
  readonly onChange: () => void
  /** Shared with the other threads of the staging. Default: of this runner alone. */
  readonly etagEvidence?: EtagEvidence | undefined
  /** Turns at writing, shared by all threads of the staging. Default: only one thread writes. */
  readonly turns?: FileTurns | undefined
}

type WholeTask = Extract<TransferTask, { kind: 'whole' }>
type ProveTask = Extract<TransferTask, { kind: 'prove' }>

const MAX_MISMATCHES = 2

/** Runs transfer tasks in this thread, with retries, and keeps counts. */
export class TransferRunner {
  readonly counts = { receivedBytes: 0, retries: 0, throttled: 0 }
  readonly #options: TransferRunnerOptions
  readonly #folders = new KeptFolders()
  readonly #judge: EtagJudge

  constructor(options: TransferRunnerOptions) {
    this.#options = options
    this.#judge = new EtagJudge(options.etagEvidence)
  }

  run<Kind extends TransferTask['kind']>(
    task: Extract<TransferTask, { kind: Kind }>,
  ): Promise<TransferResults[Kind]>
  run(task: TransferTask): Promise<TransferResults[TransferTask['kind']]> {
    const { signal } = this.#options
    switch (task.kind) {
      case 'whole':
        return this.#fetchWhole(task)
      case 'part': {
        return this.#carryOut(new PartTransfer({ ...task, tools: this.#tools }))
      }
      case 'range':
        return this.#carryOut(new RangeTransfer({ ...task, tools: this.#tools }))
      case 'digest':
        return digestPart({ ...task, signal })
      case 'inspect':
        return this.#inspect(task.object)
      case 'prove':
        return this.#prove(task)
    }
  }

  /** A reader waits for this object, or for a range of it. */
  hurry(key: string, range?: ByteRange): void {
    this.#options.fetcher.hurry?.(key, range)
  }

  /** Closes the fetcher too. */
  async close(): Promise<void> {
    await this.#options.fetcher.close()
    this.#folders.close()
  }

  get #tools() {
    const { fetcher, turns } = this.#options
    return { fetcher, turns, folders: this.#folders }
  }

  async #fetchWhole(task: WholeTask): Promise<TransferResults['whole']> {
    const { object, urgency } = task
    let isRepeated: boolean = false
    let same = { digest: '', times: 0 }
    for (let mismatches = 0; ; mismatches += 1) {
      const transfer = new WholeTransfer(this.#tools, { object, urgency, isRepeated, judge: this.#judge })
      if (mismatches === 0 && task.mayBeLeft) await this.#goOn(transfer, object, task.mayBeLeft)
      const { digest, verifiedBy, isHearsay = false } = await this.#carryOut(transfer)
      const { leftBytes } = transfer
      const isUnproven = verifiedBy === 'own-sha256'
      if (!isUnproven || (!isHearsay && countUploadParts(object.etag) < 2))
        return { digest, verifiedBy, leftBytes }
      same = { digest, times: same.digest === digest ? same.times + 1 : 1 }
      // Uploaded in parts, or from another node without a match: the source knows more. It verifies the file.
      const facts = await this.#inspect(object)
      try {
        const provenBy = await proveByUploadParts(object, facts, this.#options.signal)
        if (!isHearsay || provenBy !== 'own-sha256' || !mayProve(object, facts))
          return { digest, verifiedBy: provenBy, leftBytes }
      } catch (error) {
        const isLast = mismatches === MAX_MISMATCHES
        const sameTimes = isLast ? same.times : 0
        if (!isHearsay && this.#isNone(error, { object, proof: planUploadProof(object, facts), sameTimes }))
          return { digest, verifiedBy, leftBytes }
        if (!isDscError(error, 'CHECKSUM_MISMATCH') || isLast) throw error
      }
      isRepeated = isHearsay
      this.counts.retries += 1
      this.counts.receivedBytes -= object.sizeBytes
    }
  }

  async #prove({ object, sameTimes, ...task }: ProveTask): Promise<VerifiedBy> {
    const { key, path } = object
    const { signal } = this.#options
    try {
      const verifiedBy = await proveParts({ ...task, key, path, signal })
      const isOfNodes = task.finished.some(({ proof }) => proof === PROVEN_ELSEWHERE)
      if (isOfEtag(task.proof) && verifiedBy === 'etag-md5' && !isOfNodes) this.#judge.proven()
      return verifiedBy
    } catch (error) {
      if (!this.#isNone(error, { object, proof: task.proof, sameTimes })) throw error
      return 'own-sha256'
    }
  }

  /** Whether a failed proof shows that the etag is no MD5. */
  #isNone(error: unknown, failed: Pick<ProveTask, 'object' | 'proof' | 'sameTimes'>): boolean {
    const isMismatch = isDscError(error, 'CHECKSUM_MISMATCH') && isOfEtag(failed.proof)
    return isMismatch && this.#judge.isNoneAfter(failed.object.key, failed.sameTimes)
  }

  async #goOn(transfer: WholeTransfer, object: TransferObject, from: 'source' | 'nodes'): Promise<void> {
    const bytes = this.#folders.on(object.path, (path) => countLeft(path, object.sizeBytes))
    if (bytes === 0) return
    const facts = await this.#inspect(object)
    transfer.goOn(bytes, from === 'nodes' ? { ...facts, isHearsay: true } : facts)
    this.counts.receivedBytes += transfer.leftBytes
  }

  async #inspect(object: TransferObject): Promise<ObjectFacts> {
    const facts = await this.#attempt((limits) => this.#options.fetcher.inspect({ ...object, ...limits }))
    const uploadParts = countUploadParts(object.etag)
    if (facts.uploadPartBytes !== null || uploadParts < 2) return facts
    const uploadPartBytes = guessUploadPartBytes(object.sizeBytes, uploadParts)
    return { ...facts, uploadPartBytes, isPartSizeGuessed: true }
  }

  /** Makes attempts that each resume where the previous one stopped. */
  async #carryOut<Value>(transfer: {
    attempt(limits: AttemptLimits): Promise<Value>
    leave(): void
  }): Promise<Value> {
    let keptBytes = 0
    const onLost = (bytes: number) => {
      this.counts.receivedBytes -= bytes
      keptBytes -= bytes
    }
    try {
      return await this.#attempt(
        ({ onBytes, ...limits }) =>
          transfer.attempt({
            ...limits,
            onLost,
            onBytes: (bytes) => {
              keptBytes += bytes
              return onBytes(bytes)
            },
          }),
        () => keptBytes,
      )
    } catch (error) {
      transfer.leave()
      throw error
    }
  }

  #attempt<Value>(
    attempt: (limits: AttemptLimits & { readonly onBytes: (bytes: number) => number }) => Promise<Value>,
    keptBytes: () => number = () => 0,
  ): Promise<Value> {
    const { stallTimeoutMs, signal, takeBandwidth, onChange } = this.#options
    const { counts } = this
    const onBytes = (bytes: number) => {
      counts.receivedBytes += bytes
      onChange()
      return takeBandwidth(bytes)
    }
    return withRetries(() => attempt({ stallTimeoutMs, signal, onBytes }), {
      signal,
      keptBytes,
      onRetry: (failure) => {
        counts.retries += 1
        if (failure.code === 'SOURCE_THROTTLED') counts.throttled += 1
      },
    })
  }
}

/** Digests that the manifest keeps of a part, read from its file; the same as from a transfer of the whole part. */
async function digestPart(options: {
  readonly object: TransferObject
  readonly part: ByteRange
  readonly proofAlgorithm: ProofAlgorithm | undefined
  readonly signal: AbortSignal
}): Promise<FinishedPart> {
  const { object, part, proofAlgorithm, signal } = options
  const { content, proof } = planPartDigests(proofAlgorithm)
  await using file = await open(object.path)
  const digest = async (algorithm: typeof content) =>
    formatDigest(algorithm, await digestRange(file, part, { algorithm, signal }))
  return { digest: await digest(content), proof: proof ? await digest(proof) : null }
}

/** Whether the etag would verify the object if the size of its upload parts were known for certain. */
function mayProve({ etag }: TransferObject, facts: ObjectFacts): boolean {
  return facts.isEtagMd5 && countUploadParts(etag) > 1
}
