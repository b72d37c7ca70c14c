import { redactText } from '../../failure/redact.js'
import type { PodEvents } from './pod-events.js'
import type { Pod } from './volume-request.js'

/** How often stagings are looked at, and how old they are when they are told of first, in ms. */
const LOOK_MS = 5000

/** A dataset on its way to a pod. */
export interface ToldStaging {
  readonly pod: Pod
  /** `performance.now()` when it began. */
  readonly beganMs: number
  /** How far it is, in one line. */
  readonly progress: string
}

/**
 * Tells pods how far their datasets are, as events: kubelet itself tells it only when a call has failed, after nearly two
 * minutes. Returns a function that ends it.
 */
export function tellStagings(
  list: () => readonly ToldStaging[],
  events: Pick<PodEvents, 'tell' | 'keepOnly'>,
): () => void {
  const timer = setInterval(() => {
    const stagings = Map.groupBy(list(), ({ pod }) => pod.uid)
    events.keepOnly(stagings)
    for (const ofPod of stagings.values()) {
      const old = ofPod.filter(({ beganMs }) => performance.now() - beganMs >= LOOK_MS)
      const message = redactText(old.map(({ progress }) => progress).join('; '))
      if (old.length > 0) events.tell(old[0]!.pod, { reason: 'Staging', message })
    }
  }, LOOK_MS).unref()
  return () => clearInterval(timer)
}
