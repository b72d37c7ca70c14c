import type { Cache } from '../../cache/cache.js'
import { saveNode } from '../../cache/save-node.js'
import { median } from '../../exchange/plan/fit-link.js'
import type { BenchLimits } from './bench-disk.js'
import type { Figure } from './figure.js'

const ROUNDS = 30

/**
 * Asks the record what this node has, and has it keep how the node is, as every staging does: nothing in it is another
 * afterwards.
 */
export async function benchRecord(cache: Cache, limits: BenchLimits): Promise<readonly Figure[]> {
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
