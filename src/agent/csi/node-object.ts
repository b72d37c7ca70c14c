import { z } from 'zod'
import type { CopyUse } from '../../model/copy.js'
import type { NodeApiServer } from './api-server.js'
import { planLabels } from './plan-labels.js'

/** The node is read again after this time, as others change it, too. */
const READ_AFTER_MS = 600_000
/** Changes that come within this time share a patch, ms. */
const SOON_MS = 1000

const nodeObject = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.object({ taints: z.array(z.looseObject({ key: z.string() })).default([]) }),
})

/** The cluster and the copies of this node. */
interface NodeMeans {
  readonly api: NodeApiServer
  readonly driver: string
  /** The name of the node in Kubernetes, which is its name in dsc. */
  readonly node: string
  /** Datasets whose names everybody who reads nodes may learn. */
  readonly shown: ReadonlySet<string>
  readonly listCopies: () => Promise<readonly CopyUse[]>
  readonly stopping: AbortSignal
  readonly note: (sentence: string) => void
}

/**
 * This node, as Kubernetes describes it: pods are scheduled by its labels, which name the datasets it has, and by a taint,
 * `<driver>/agent-not-ready`, that keeps pods away until kubelet knows the driver. Nothing else of it is changed.
 */
export class NodeObject {
  readonly #means: NodeMeans
  readonly #path: string
  #labels: Readonly<Record<string, string>> = {}
  #readAtMs = Number.NEGATIVE_INFINITY
  #isRegistered = false
  #isLeaving = false
  #keeping: Promise<void> | undefined
  #soon: NodeJS.Timeout | undefined
  #told: string | undefined

  constructor(means: NodeMeans) {
    this.#means = means
    this.#path = `/api/v1/nodes/${encodeURIComponent(means.node)}`
  }

  /** Kubelet has taken the driver; it says so once CSINode lists it. */
  async registered(): Promise<void> {
    await this.#keeping
    this.#isRegistered = true
    this.#readAtMs = Number.NEGATIVE_INFINITY
    await this.keep()
  }

  /**
   * Takes its labels from the node, as nothing would keep them true: pods must not go where no agent mounts. The next
   * agent sets them again. The taint stays as it is, for it says the same. Never rejects.
   */
  async leave(): Promise<void> {
    this.#isLeaving = true
    await this.#keeping
    await this.keep()
  }

  /** The copies of this node may have changed: brings the node up to date a second later. */
  keepSoon(): void {
    if (this.#soon !== undefined) return
    this.#soon = setTimeout(() => {
      this.#soon = undefined
      const before = this.#keeping ?? Promise.resolve() // it may have looked before the change
      void before.then(() => this.keep())
    }, SOON_MS).unref()
  }

  /** Brings the node up to date. Never rejects: what fails is told once, and tried again by the next call. */
  keep(): Promise<void> {
    this.#keeping ??= this.#update()
      .then(() => {
        this.#told = undefined
      })
      .catch((error: Error) => {
        this.#readAtMs = Number.NEGATIVE_INFINITY // a patch may have met a node that others had changed
        if (this.#means.stopping.aborted || this.#told === error.message) return
        this.#told = error.message
        this.#means.note(
          `the labels of node ${this.#means.node} in Kubernetes stay as they are: ${error.message}`,
        )
      })
      .finally(() => {
        this.#keeping = undefined
      })
    return this.#keeping
  }

  async #update(): Promise<void> {
    const { api, driver, shown, listCopies } = this.#means
    if (performance.now() - this.#readAtMs > READ_AFTER_MS) await this.#read()
    const copies = this.#isLeaving ? [] : await listCopies()
    const labels = planLabels({ driver, labels: this.#labels, copies, shown })
    if (Object.keys(labels).length === 0) return
    await api.patch(this.#path, 'merge-patch', { metadata: { labels } })
    const next = Object.entries({ ...this.#labels, ...labels })
    this.#labels = Object.fromEntries(
      next.flatMap(([label, value]) => (value === null ? [] : [[label, value]])),
    )
  }

  async #read(): Promise<void> {
    const { api, driver } = this.#means
    const { metadata, spec } = nodeObject.parse(await api.get(this.#path))
    this.#labels = metadata.labels
    const isTaint = ({ key }: { readonly key: string }) => key === `${driver}/agent-not-ready`
    if (this.#isRegistered && spec.taints.some(isTaint)) {
      const value = spec.taints.filter((taint) => !isTaint(taint))
      await api.patch(this.#path, 'json-patch', [
        { op: 'test', path: '/spec/taints', value: spec.taints }, // others set taints, too
        { op: 'replace', path: '/spec/taints', value },
      ])
    }
    this.#readAtMs = performance.now()
  }
}
