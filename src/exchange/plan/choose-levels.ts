import { ringCallCost } from './cost-model.js'
import { type ExchangeInput, planBuckets } from './plan-exchange.js'
import { simulateBuckets } from './simulate-buckets.js'

/** The number of levels of the exchange, and the reason. */
export interface LevelChoice {
  /** 2: ranks of one host take their mean first, and one rank per host is on the network. */
  readonly levels: 1 | 2
  /** Number of ranks in the network's ring. */
  readonly networkRanks: number
  /** One sentence; undefined if every host has one rank. */
  readonly explanation?: string
}

/** Seconds to hand one bucket around a host, apart from its bytes, which move while other buckets do. */
const HOST_CALL_SECONDS = 0.5e-3

/**
 * Chooses between a ring of all ranks, in which every host sends 2(P−1)/P of the bytes, and a ring of hosts, in which
 * it sends 2(H−1)/H. Compared in half precision, on the link as measured. `ranksPerHost` divides `ranks`.
 */
export function chooseLevels(
  input: Omit<ExchangeInput, 'wireBytes' | 'useOptimum'>,
  ranksPerHost: number,
): LevelChoice {
  const { ranks } = input
  const hosts = ranks / ranksPerHost
  if (ranksPerHost === 1) return { levels: 1, networkRanks: ranks }
  if (hosts === 1) {
    const explanation = 'All ranks are on one host: nothing crosses a network; see dsc.exchange.SharedMemory.'
    return { levels: 1, networkRanks: ranks, explanation }
  }
  const flatSeconds = predict(input, ranks, 0)
  const twoSeconds = predict(input, hosts, HOST_CALL_SECONDS)
  const formatMs = (seconds: number) => `${(seconds * 1000).toFixed(0)} ms`
  const [two, flat] = [formatMs(twoSeconds), formatMs(flatSeconds)]
  return twoSeconds < flatSeconds
    ? {
        levels: 2,
        networkRanks: hosts,
        explanation: `two levels: with one of ${ranksPerHost} ranks per host on the network, backward with its exchange takes ${two} instead of ${flat} (both in halves).`,
      }
    : {
        levels: 1,
        networkRanks: ranks,
        explanation: `one level: two would take ${two} instead of ${flat}.`,
      }
}

function predict(
  input: Omit<ExchangeInput, 'wireBytes' | 'useOptimum'>,
  ranks: number,
  hostSeconds: number,
): number {
  const cost = ringCallCost(input.link, ranks)
  const { buckets } = planBuckets({ ...input, ranks, wireBytes: 2 })
  const wire = { bytesPerElement: 2, cost: { ...cost, callSeconds: cost.callSeconds + hostSeconds } }
  return simulateBuckets(input.gradients, buckets, wire).finishSeconds
}
