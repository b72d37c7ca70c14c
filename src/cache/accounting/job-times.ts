import { parseCulprit, readFedTime } from '../../model/fed-time.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { StepBlocks } from '../../model/step-blocks.js'
import { readUseWait } from '../../model/use-wait.js'
import { type Cause, findNodeHoldUps } from './node-hold-ups.js'
import { findQueueTime, isBefore, type LeaseTime, type QueueTime } from './queue-times.js'

/** Where GPUs waited: for staging before training, for their feed, or for the user's own transform. */
export const WAIT_PLACES = ['queue', 'feed', 'transform'] as const
export type WaitPlace = (typeof WAIT_PLACES)[number]

/** One cause for which a job waited. */
export interface JobWait {
  readonly place: WaitPlace
  /** As in `FedTime.waits`; in the queue the dataset that was staged, ` on gpu-03` where other nodes waited for that. */
  readonly culprit: string
  readonly gpuMs: number
}

/** How the GPUs of a job spent their time. */
export interface JobTime {
  readonly task: string
  readonly nodes: number
  /** GPUs whose trainers reported to their feed; one per node without a feed. */
  readonly gpus: number
  readonly gpuMs: number
  readonly waitedGpuMs: number
  /** Longest first. */
  readonly waits: readonly JobWait[]
}

/** The trainers of one dataset, by what their feed told. */
interface FedDataset {
  /** When the first trainer began to count. */
  sinceMs: number
  /** A job may have a feed each for training and validation, of which one trainer tells both. */
  gpus: number
  readonly steps: StepBlocks[]
}

/** The leases and feeds of a job on one node. */
interface JobOnNode {
  readonly name: string
  readonly leases: LeaseTime[]
  endedAtMs: number
  fedGpuMs: number
  readonly feeds: Map<string, FedDataset>
  readonly waits: Map<string, number>
}

interface HeldUp extends JobWait {
  /** The part that is in no GPU time that trainers told. */
  readonly uncountedGpuMs?: number
}

/** The kinds of events that `JobTimes` reads. */
export const JOB_EVENTS = ['leased', 'released', 'lease-expired', 'fed'] as const

/** Adds up how the GPUs of jobs spent their time, from `JOB_EVENTS` in any order. */
export class JobTimes {
  readonly #jobs = new Map<string, Map<string, JobOnNode>>()

  add(event: RecordEvent): void {
    const { kind, task, node, dataset, atMs } = event
    if (task === null) return
    if (kind === 'leased') this.#of(task, node).leases.push({ dataset, ...readUseWait(event) })
    else if (kind === 'released' || kind === 'lease-expired') {
      const job = this.#of(task, node)
      job.endedAtMs = Math.max(job.endedAtMs, atMs)
    } else if (kind === 'fed') this.#addFed(this.#of(task, node), event)
  }

  /** The jobs, those that waited longest first. One that is not over counts to `untilMs`. */
  list(untilMs: number): readonly JobTime[] {
    return [...this.#jobs]
      .map(([task, nodes]) => sumJob(task, [...nodes.values()], untilMs))
      .filter(({ gpuMs }) => gpuMs > 0)
      .sort((a, b) => b.waitedGpuMs - a.waitedGpuMs || (a.task < b.task ? -1 : 1))
  }

  #addFed(job: JobOnNode, event: RecordEvent): void {
    const { sinceAgoMs, gpus, gpuMs, waits, steps } = readFedTime(event)
    job.fedGpuMs += gpuMs
    const feed = job.feeds.get(event.dataset) ?? { sinceMs: Number.POSITIVE_INFINITY, gpus: 0, steps: [] }
    job.feeds.set(event.dataset, feed)
    feed.sinceMs = Math.min(feed.sinceMs, event.atMs - sinceAgoMs)
    feed.gpus = Math.max(feed.gpus, gpus)
    if (steps) feed.steps.push(steps)
    for (const [culprit, ms] of Object.entries(waits))
      job.waits.set(culprit, (job.waits.get(culprit) ?? 0) + ms)
  }

  #of(task: string, name: string): JobOnNode {
    const nodes = this.#jobs.get(task) ?? new Map<string, JobOnNode>()
    this.#jobs.set(task, nodes)
    const found = nodes.get(name) ?? {
      name,
      leases: [],
      endedAtMs: 0,
      fedGpuMs: 0,
      feeds: new Map<string, FedDataset>(),
      waits: new Map<string, number>(),
    }
    nodes.set(name, found)
    return found
  }
}

function sumJob(task: string, nodes: readonly JobOnNode[], untilMs: number): JobTime {
  const waits = new Map<string, JobWait>()
  const wait = (place: WaitPlace, culprit: string, given: number) => {
    const gpuMs = Math.round(given)
    if (gpuMs <= 0) return
    const key = `${place} ${culprit}`
    waits.set(key, { place, culprit, gpuMs: gpuMs + (waits.get(key)?.gpuMs ?? 0) })
  }
  let [gpus, gpuMs] = [0, 0]
  const queues = nodes.map((node) => findQueueTime(node.leases, fedSinceMs(node)))
  for (const [at, node] of nodes.entries()) {
    const own = countGpus(node)
    gpus += own
    gpuMs += own * queues[at]!.totalMs
    for (const { dataset, ms } of queues[at]!.waits) wait('queue', dataset, own * ms)
    if (node.fedGpuMs > 0) gpuMs += node.fedGpuMs
    else if (node.leases.length > 0) gpuMs += own * findUseMs(node, untilMs)
    for (const { place, culprit, ms } of findCauses(node, node.waits)) wait(place, culprit, ms)
  }
  for (const { place, culprit, gpuMs: held, uncountedGpuMs = 0 } of findHeldUp(nodes, queues)) {
    gpuMs += uncountedGpuMs
    wait(place, culprit, held)
  }
  const listed = [...waits.values()].sort((a, b) => b.gpuMs - a.gpuMs)
  const waitedGpuMs = listed.reduce((sum, each) => sum + each.gpuMs, 0)
  return { task, nodes: nodes.length, gpus, gpuMs: Math.round(gpuMs), waitedGpuMs, waits: listed }
}

function fedSinceMs({ feeds }: JobOnNode): number {
  return Math.min(...[...feeds.values()].map(({ sinceMs }) => sinceMs))
}

/** How long a job without a feed used its datasets, ms. */
function findUseMs({ leases, endedAtMs }: JobOnNode, untilMs: number): number {
  const beganAtMs = Math.min(...leases.map(({ readAtMs }) => readAtMs))
  return Math.max(0, (endedAtMs > beganAtMs ? endedAtMs : untilMs) - beganAtMs)
}

/** One per node without a feed. */
function countGpus({ feeds }: JobOnNode): number {
  return Math.max(...[...feeds.values()].map(({ gpus }) => gpus), feeds.size === 0 ? 1 : 0)
}

/** Finds the places of waits that trainers told. A feed that stages its dataset itself starts late for that reason. */
function findCauses(node: JobOnNode, waits: Iterable<readonly [string, number]>): readonly Cause[] {
  const staged = node.leases.filter((lease) => !isBefore(lease, fedSinceMs(node)))
  const stagedMs = Math.max(0, ...staged.map(({ askedAtMs, readAtMs }) => readAtMs - askedAtMs))
  const share = Math.min(1, (countGpus(node) * stagedMs) / (node.waits.get('start') ?? 1))
  return [...waits].flatMap(([name, ms]): readonly Cause[] => {
    const { culprit } = parseCulprit(name)
    const place = culprit === 'transform' ? 'transform' : 'feed'
    if (culprit !== 'start' || share === 0) return [{ place, culprit: name, ms }]
    return [
      { place: 'queue', culprit: staged[0]!.dataset, ms: share * ms },
      { place, culprit: name, ms: (1 - share) * ms },
    ]
  })
}

/** The waits of nodes for each other, in the steps over each dataset, and before those over the first. */
function findHeldUp(nodes: readonly JobOnNode[], queues: readonly QueueTime[]): readonly HeldUp[] {
  const told = nodes.flatMap(({ feeds }) => [...feeds].filter(([, { steps }]) => steps.length > 0))
  const datasets = new Set(told.sort(([, a], [, b]) => a.sinceMs - b.sinceMs).map(([dataset]) => dataset))
  return [...datasets].flatMap((dataset, at) => {
    const readers = nodes.flatMap((node, place) => {
      const feed = node.feeds.get(dataset)
      if (!feed || feed.steps.length === 0) return []
      const { gpus, steps } = feed
      const causes = steps.flatMap((each) => findCauses(node, Object.entries(each.causes)))
      const named = causes.map((each) => (each.place === 'queue' ? nameNode(each, node) : each))
      return [{ node, queue: queues[place]!, gpus, steps, causes: named }]
    })
    const { inQueue, inSteps } = findNodeHoldUps(readers, at === 0 ? readers.map(({ queue }) => queue) : [])
    const held = inQueue.flatMap(({ last, heldMs, heldBeforeMs }, reader): readonly HeldUp[] => {
      const { node, queue } = readers[last]!
      const { gpus } = readers[reader]!
      return queue.waits.map(({ dataset: culprit, ms }) => ({
        ...nameNode({ place: 'queue', culprit }, node),
        gpuMs: (gpus * heldMs * ms) / queue.totalMs,
        uncountedGpuMs: (gpus * heldBeforeMs * ms) / queue.totalMs,
      }))
    })
    return [...held, ...inSteps]
  })
}

/** Names the node for which others waited. */
function nameNode<Named extends { readonly culprit: string }>(cause: Named, { name }: JobOnNode): Named {
  return { ...cause, culprit: `${cause.culprit} on ${name}` }
}
