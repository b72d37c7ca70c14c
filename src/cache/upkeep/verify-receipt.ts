import { DscError, describeFailure, isDscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { Dataset } from '../../model/dataset.js'
import type { UsedVersion } from '../../model/receipt.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { Cache } from '../cache.js'
import { listElsewhere } from '../download/list-elsewhere.js'
import type { VerifiedReceiptAnswer } from './verified-answer.js'
import { type VerifiedDataset, verifyDataset } from './verify-dataset.js'

/** Whether the bytes of one used version are still available, and where. */
export type VerifiedVersion = VerifiedReceiptAnswer['datasets'][number]
/** The source's present content, compared with the used version. */
type SourceFinding = VerifiedVersion['source']

/** A version to look for, as a receipt names it. */
export type NamedVersion = Pick<UsedVersion, 'dataset' | 'version' | 'source' | 'stripe'>

interface Options {
  readonly signal: AbortSignal
  /** Chooses the definition to list a receipt's source with, or rejects. Default: the receipt's own. */
  readonly judgeSource?: (named: Dataset) => Promise<Dataset>
  readonly onProgress: (dataset: string, checkedFiles: number, checkedBytes: number) => void
}

/** Lists the source of each version now, and reads the copy on this node again. Changes nothing. */
export async function verifyReceipt(
  cache: Cache,
  used: readonly NamedVersion[],
  options: Options,
): Promise<readonly VerifiedVersion[]> {
  const verified: VerifiedVersion[] = []
  for (const each of used) {
    const source = await findInSource(cache, each, options)
    const filter = { dataset: each.dataset, states: ['ready'] as const }
    const copies = (await cache.record.listCopies(filter, cache.nowMs())).filter((copy) => holds(copy, each))
    const isHere = copies.some(({ node }) => node === cache.node)
    const here = isHere ? await readHere(cache, each, options) : null
    verified.push({
      dataset: each.dataset,
      version: each.version,
      isAvailable: source.state === 'same' || here?.damages === 0,
      source,
      here,
      nodes: [...new Set(copies.map(({ node }) => node))].filter((node) => node !== cache.node),
    })
  }
  return verified
}

/** Whether a copy has everything that was used: the whole version, or the same stripe of it. */
function holds(copy: Copy, { version, stripe }: NamedVersion): boolean {
  if (copy.version !== version) return false
  if (copy.stripe === undefined) return true
  return copy.stripe.index === stripe?.index && copy.stripe.nodes.length === stripe.nodes.length
}

async function findInSource(
  cache: Cache,
  { source, version }: NamedVersion,
  { signal, judgeSource = async (named) => named }: Options,
): Promise<SourceFinding> {
  if (source === null) return { state: 'unknown' }
  try {
    const isFile = readScheme(source) === 'file'
    const listing = await listElsewhere(cache, await judgeSource(source), signal)
    if (listing.version !== version) return { state: 'changed', version: listing.version }
    return { state: 'same', provenBy: isFile ? 'size-and-time' : 'listing' }
  } catch (error) {
    if (!isDscError(error) || isDscError(error, 'INTERRUPTED')) throw error
    return { state: 'unreadable', failure: describeFailure(error) }
  }
}

/** The scheme of a source; its receipt may have been edited. Throws USAGE for text that names no source. */
function readScheme({ source }: Dataset): string {
  try {
    return parseSourceUrl(source).scheme
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('USAGE', error.message, { cause: error })
  }
}

async function readHere(
  cache: Cache,
  used: NamedVersion,
  options: Options,
): Promise<VerifiedVersion['here']> {
  const { copies: results } = await verifyDataset(cache, [used.dataset], {
    ...options,
    isRepair: false,
    accept: (copy) => holds(copy, used),
  })
  const [best] = results.toSorted((a, b) => problemsOf(a) - problemsOf(b))
  if (best === undefined) return null
  const { checkedFiles, checkedBytes } = best
  return { checkedFiles, checkedBytes, damages: problemsOf(best) }
}

function problemsOf({ damages, failure }: VerifiedDataset): number {
  return damages.length + (failure ? 1 : 0)
}
