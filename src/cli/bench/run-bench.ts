import { randomBytes } from 'node:crypto'
import type { Cache } from '../../cache/cache.js'
import { stagingDirectory } from '../../cache/cache-layout.js'
import { makeHeld } from '../../cache/held-cache.js'
import { saveNode } from '../../cache/save-node.js'
import { median } from '../../exchange/plan/fit-link.js'
import { isDscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import { measureLoad } from '../../policy/plan-eviction.js'
import { findShortfalls } from '../../policy/quota.js'
import { type BenchLimits, benchDisk, SMALL_FILES } from './bench-disk.js'
import { benchStore } from './bench-store.js'
import { type Figure, findSlowest, type JudgedFigure, judgeFigures, type NodePart } from './figure.js'

const ROUNDS = 30

const MIB = 1024 * 1024
/** Sizes to write, in MiB; the first that fits is used. */
const SIZES = [512, 128, 32]
/** Time per figure, in ms: seven of them take less than a minute. */
const LIMIT_MS = 8000

/** The result of `dsc bench`. */
export interface BenchResult {
  readonly figures: readonly JudgedFigure[]
  /** Parts that could not be measured, and why. */
  readonly skipped: readonly { readonly part: NodePart; readonly reason: string }[]
  /** The figure furthest below what dsc needs; undefined if all are good enough. */
  readonly slowest: JudgedFigure | undefined
}

/** Measures this node's disk, record and source, one after the other. Leaves nothing behind, however it ends. */
export async function runBench(
  cache: Cache,
  options: {
    readonly dataset: Dataset | undefined
    readonly signal: AbortSignal
    readonly onPart: (part: NodePart) => void
  },
): Promise<BenchResult> {
  const { dataset, signal, onPart } = options
  const limits = { limitMs: LIMIT_MS, signal }
  const figures: Figure[] = []
  const skipped: { part: NodePart; reason: string }[] = []
  onPart('disk')
  const disk = await benchCacheDisk(cache, limits)
  if (disk === undefined)
    skipped.push({ part: 'disk', reason: 'the policy of this node has no room to write' })
  else figures.push(...disk)
  if (disk && !disk.some(({ what }) => what === 'reads'))
    skipped.push({ part: 'disk', reason: 'reads: they need `dd` of GNU coreutils, to have the disk asked' })
  onPart('record')
  figures.push(...(await benchRecord(cache, limits)))
  onPart('store')
  const store = dataset && (await benchOneStore(cache, dataset, limits))
  if (store === undefined)
    skipped.push({ part: 'store', reason: 'no dataset is known whose store could be read' })
  else if ('reason' in store) skipped.push({ part: 'store', ...store })
  else figures.push(...store)
  const judged = judgeFigures(figures)
  return { figures: judged, skipped, slowest: findSlowest(judged) }
}

/** Undefined if even the smallest meaningful size does not fit. Evicts nothing. */
async function benchCacheDisk(cache: Cache, limits: BenchLimits): Promise<readonly Figure[] | undefined> {
  const sizeMib = await findRoom(cache)
  if (sizeMib === undefined) return undefined
  // In staging/, where `dsc cleanup` removes anything unknown to the record, in case this process is killed.
  const name = `bench-${randomBytes(6).toString('hex')}`
  const held = makeHeld(cache.root, ['staging', name])
  try {
    return await benchDisk(held.path, sizeMib * MIB, limits)
  } finally {
    held.close()
    await removeDirectory(`${stagingDirectory(cache.root)}/${name}`)
  }
}

async function findRoom(cache: Cache): Promise<number | undefined> {
  const load = measureLoad(await cache.record.sumCopies({ node: cache.node }, cache.nowMs()))
  const disk = await cache.measureDisk()
  return SIZES.find((mib) => {
    const request = { datasets: 0, bytes: (mib + 2) * MIB, inodes: SMALL_FILES + 2 }
    return findShortfalls({ policy: cache.policy, disk, load, request }).length === 0
  })
}

async function benchOneStore(
  cache: Cache,
  dataset: Dataset,
  limits: BenchLimits,
): Promise<readonly Figure[] | { readonly reason: string }> {
  try {
    const figures = await benchStore(cache, dataset, limits)
    return figures.length > 0 ? figures : { reason: `${dataset.name} has no objects with bytes in them` }
  } catch (error) {
    limits.signal.throwIfAborted()
    if (!isDscError(error)) throw error
    return { reason: error.message }
  }
}

/**
 * Asks the record for this node's copies, and saves the node's state there, as every download does: afterwards, the
 * record holds the same as before.
 */
async function benchRecord(cache: Cache, limits: BenchLimits): Promise<readonly Figure[]> {
  const { record, node } = cache
  const answers = await medianMs(limits, () => record.listCopies({ node }, cache.nowMs()))
  const changes = await medianMs(limits, () => saveNode(cache))
  return [
    { part: 'record', what: 'answers', value: answers },
    { part: 'record', what: 'keeps a change', value: changes },
  ]
}

async function medianMs({ limitMs, signal }: BenchLimits, work: () => Promise<unknown>): Promise<number> {
  const tookMs: number[] = []
  const endMs = performance.now() + limitMs
  do {
    signal.throwIfAborted()
    const startMs = performance.now()
    await work()
    tookMs.push(performance.now() - startMs)
  } while (tookMs.length < ROUNDS && performance.now() < endMs)
  return median(tookMs)
}
