import { describeFailure, isDscError, type KnownFailure } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { UsedVersion } from '../../model/receipt.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { Cache } from '../cache.js'
import { listElsewhere } from '../download/list-elsewhere.js'
import { verifyDataset } from './verify-dataset.js'

/** The source's present content, compared with the used version. */
type SourceFinding =
  /** The same objects, with the same sizes, etags, version ids and checksums: the manifest has the same digest. */
  | { readonly state: 'same'; readonly provenBy: 'listing' | 'size-and-time' }
  | { readonly state: 'changed'; readonly version: string }
  | { readonly state: 'unreadable'; readonly failure: KnownFailure }
  | { readonly state: 'unknown' }

/** Whether the bytes of one used version are still available, and where. */
export interface VerifiedVersion {
  readonly dataset: string
  readonly version: string
  /** The source has it, or this node does and every byte was compared just now. */
  readonly isAvailable: boolean
  readonly source: SourceFinding
  /** The copy on this node, read and compared with its digests; null = this node has no copy. */
  readonly here: {
    readonly checkedFiles: number
    readonly checkedBytes: number
    readonly damages: number
  } | null
  /** Other nodes that claim to have it; `dsc verify` on them would confirm it. */
  readonly nodes: readonly string[]
}

interface Options {
  readonly signal: AbortSignal
  readonly onProgress: (dataset: string, checkedFiles: number, checkedBytes: number) => void
}

/** Lists the source of each version now, and reads the copy on this node again. Changes nothing. */
export async function verifyReceipt(
  cache: Cache,
  used: readonly UsedVersion[],
  options: Options,
): Promise<readonly VerifiedVersion[]> {
  const verified: VerifiedVersion[] = []
  for (const each of used) {
    const source = await findInSource(cache, each, options.signal)
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
function holds(copy: Copy, { version, stripe }: UsedVersion): boolean {
  if (copy.version !== version) return false
  if (copy.stripe === undefined) return true
  return copy.stripe.index === stripe?.index && copy.stripe.nodes.length === stripe.nodes.length
}

async function findInSource(
  cache: Cache,
  { source, version }: UsedVersion,
  signal: AbortSignal,
): Promise<SourceFinding> {
  if (source === null) return { state: 'unknown' }
  try {
    const listing = await listElsewhere(cache, source, signal)
    if (listing.version !== version) return { state: 'changed', version: listing.version }
    const isFile = parseSourceUrl(source.source).scheme === 'file'
    return { state: 'same', provenBy: isFile ? 'size-and-time' : 'listing' }
  } catch (error) {
    if (!isDscError(error) || isDscError(error, 'INTERRUPTED')) throw error
    return { state: 'unreadable', failure: describeFailure(error) }
  }
}

async function readHere(cache: Cache, used: UsedVersion, options: Options): Promise<VerifiedVersion['here']> {
  const results = await verifyDataset(cache, [used.dataset], {
    ...options,
    isRepair: false,
    accept: (copy) => holds(copy, used),
  })
  const [best] = results.toSorted((a, b) => problemsOf(a) - problemsOf(b))
  if (best === undefined) return null
  const { checkedFiles, checkedBytes } = best
  return { checkedFiles, checkedBytes, damages: problemsOf(best) }
}

function problemsOf({ damages, failure }: Awaited<ReturnType<typeof verifyDataset>>[number]): number {
  return damages.length + (failure ? 1 : 0)
}
