import { z } from 'zod'
import { unlessRejected } from '../../failure/unless-code.js'
import { pause } from '../../platform/poll.js'
import { type ApiServer, MISSING } from '../csi/api-server.js'

/** A leader that has not renewed its Lease for this long has lost it, in s. */
const LEASE_S = 15
const RENEW_MS = 5000
/** The leader gives up before another can take over. */
const LOST_MS = 10_000

const leaseObject = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string() }),
  spec: z.looseObject({ holderIdentity: z.string().nullish(), renewTime: z.string().nullish() }),
})

interface LeaderMeans {
  readonly api: Pick<ApiServer, 'get' | 'send'>
  readonly namespace: string
  readonly name: string
  /** Name of this replica: of its pod. */
  readonly identity: string
  readonly note: (sentence: string) => void
}

/**
 * Whether this replica leads, by a Lease of Kubernetes. Times of others are compared with each other alone, so clocks
 * need not agree.
 */
export class Leadership {
  readonly #means: LeaderMeans
  readonly #path: string
  #seen: { readonly version: string; readonly atMs: number } | undefined
  #renewedAtMs = Number.NEGATIVE_INFINITY

  constructor(means: LeaderMeans) {
    this.#means = means
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${means.namespace}/leases`
  }

  /** Whether this replica may act now. */
  get isLeading(): boolean {
    return performance.now() - this.#renewedAtMs < LOST_MS
  }

  /** Competes for the Lease until the signal aborts, then gives it back. Never rejects. */
  async compete(stopping: AbortSignal): Promise<void> {
    let told: string | undefined
    while (!stopping.aborted) {
      await this.#renew(false).catch((error: Error) => {
        if (told !== error.message && !stopping.aborted) this.#means.note(`leader election: ${error.message}`)
        told = error.message
      })
      await pause(RENEW_MS, stopping)
    }
  }

  /** Gives the Lease back, so that the next replica need not wait for its end. */
  async resign(): Promise<void> {
    if (this.isLeading) await this.#renew(true)
    this.#renewedAtMs = Number.NEGATIVE_INFINITY
  }

  async #renew(isOver: boolean): Promise<void> {
    const { api, name, identity } = this.#means
    const startedAtMs = performance.now()
    const time = new Date().toISOString().replace('Z', '000Z') // MicroTime has six digits
    const spec = {
      holderIdentity: isOver ? '' : identity,
      leaseDurationSeconds: isOver ? 1 : LEASE_S,
      renewTime: time,
    }
    const found = await this.#read()
    if (found === undefined) await api.send('POST', this.#path, { metadata: { name }, spec })
    else if (this.#mayTake(found)) {
      const next = { ...found, spec: { ...found.spec, ...spec } }
      await api.send('PUT', `${this.#path}/${name}`, next) // its resourceVersion lets one replica win
    } else return
    this.#renewedAtMs = startedAtMs
  }

  async #read(): Promise<z.output<typeof leaseObject> | undefined> {
    const { api, name } = this.#means
    const found = await unlessRejected(MISSING, api.get(`${this.#path}/${name}`))
    return found === undefined ? undefined : leaseObject.parse(found)
  }

  /** Whether the Lease is ours, free, or was not renewed while we watched it for its whole length. */
  #mayTake({ metadata: { resourceVersion: version }, spec }: z.output<typeof leaseObject>): boolean {
    const nowMs = performance.now()
    if (this.#seen?.version !== version) this.#seen = { version, atMs: nowMs }
    if (!spec.holderIdentity || spec.holderIdentity === this.#means.identity) return true
    return nowMs - this.#seen.atMs > LEASE_S * 1000
  }
}
