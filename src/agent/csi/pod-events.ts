import { randomUUID } from 'node:crypto'
import type { ApiServer } from './api-server.js'
import type { Pod } from './volume-request.js'

/** A reason is told again with other words after this time, in ms. */
const CHANGED_MS = 60_000
/** And all pods together tell one this often at most, in ms: each event is a write of the API server. */
const BETWEEN_MS = 100
/** The same message is told again after this time, in ms: Kubernetes forgets events after an hour. */
const AGAIN_MS = 10 * 60_000
/** Events under way at a time. */
const MAX_SENDING = 4
/** Kubernetes takes messages of at most 1024 bytes. */
const MAX_MESSAGE_CHARACTERS = 1000

interface PodEventsMeans {
  readonly api: Pick<ApiServer, 'send'>
  /** The component that events name: the driver, or the controller's `dsc.io/staged`. */
  readonly component: string
  /** An event could not be sent. It is not sent again. */
  readonly onFailure: (error: unknown) => void
}

/** Tells users what a pod waits for, as events of the pod. */
export class PodEvents {
  readonly #means: PodEventsMeans
  /** Uid of the pod → reason → what was told last. */
  readonly #told = new Map<string, Map<string, { readonly message: string; readonly atMs: number }>>()
  readonly #unsent: { readonly path: string; readonly event: object }[] = []
  #sending = 0

  constructor(means: PodEventsMeans) {
    this.#means = means
  }

  /**
   * Tells why a pod waits, or no longer does: a reason that is new at once, the same words once in ten minutes, and other
   * words, as those of progress, once a minute, or less often where more than 600 pods wait. Returns at once, so that no
   * gate waits for an event.
   */
  tell(
    pod: Pod,
    {
      reason,
      message: full,
      isWarning = false,
    }: { readonly reason: string; readonly message: string; readonly isWarning?: boolean },
  ): void {
    const message = full.slice(0, MAX_MESSAGE_CHARACTERS)
    const told = this.#told.get(pod.uid) ?? new Map<string, { message: string; atMs: number }>()
    const before = told.get(reason)
    const nowMs = performance.now()
    const changedMs = Math.max(CHANGED_MS, this.#told.size * BETWEEN_MS)
    const restMs = before?.message === message ? Math.max(AGAIN_MS, changedMs) : changedMs
    if (before && nowMs - before.atMs < restMs) return
    this.#told.set(pod.uid, told.set(reason, { message, atMs: nowMs }))
    const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const { namespace, name, uid } = pod
    const event = {
      metadata: { name: `${name.slice(0, 200)}.${randomUUID().slice(0, 8)}`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      source: { component: this.#means.component },
      ...{ reason, message, type: isWarning ? 'Warning' : 'Normal' },
      ...{ count: 1, firstTimestamp: at, lastTimestamp: at },
    }
    this.#unsent.push({ path: `/api/v1/namespaces/${namespace}/events`, event })
    if (this.#sending < MAX_SENDING) void this.#send()
  }

  async #send(): Promise<void> {
    const { api, onFailure } = this.#means
    this.#sending++
    for (let next = this.#unsent.shift(); next !== undefined; next = this.#unsent.shift())
      await api.send('POST', next.path, next.event).catch(onFailure)
    this.#sending--
  }

  /** Forgets the pods that are gone. */
  keepOnly(pods: ReadonlyMap<string, unknown>): void {
    for (const uid of this.#told.keys()) if (!pods.has(uid)) this.#told.delete(uid)
  }
}
