import { open } from 'node:fs/promises'
import { formatDigest } from '../../../proof/digest.js'
import { digestRange } from '../../../proof/digest-range.js'
import type { ProofAlgorithm } from '../../../proof/plan-proof.js'
import type { FinishedPart } from '../../../proof/prove-parts.js'
import type { ByteRange } from '../../arrivals/block-set.js'
import type { TransferObject } from './arriving-range.js'
import { planPartDigests } from './transfer.js'

/** What the manifest keeps of a part that is in its file, as a transfer of the whole part gives it. */
export async function digestPart(options: {
  readonly object: TransferObject
  readonly part: ByteRange
  readonly proofAlgorithm: ProofAlgorithm | undefined
  readonly signal: AbortSignal
}): Promise<FinishedPart> {
  const { object, part, proofAlgorithm, signal } = options
  const { content, proof } = planPartDigests(proofAlgorithm)
  const file = await open(object.path)
  try {
    const digest = async (algorithm: typeof content) =>
      formatDigest(algorithm, await digestRange(file, part, { algorithm, signal }))
    return { digest: await digest(content), proof: proof ? await digest(proof) : null }
  } finally {
    await file.close()
  }
}
