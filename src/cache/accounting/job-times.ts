import { parseCulprit, readFedTime } from '../../model/fed-time.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { StepBlocks } from '../../model/step-blocks.js'
import { readUseWait } from '../../model/use-wait.js'
import { findNodeHoldUps } from './node-hold-ups.js'

/** Where GPUs waited: for staging before training, for their feed, or for the user's own transform. */
export const WAIT_PLACES = ['queue', 'feed', 'transform'] as const
export type WaitPlace = (typeof WAIT_PLACES)[number]

/** One cause for which a job waited. */
export interface JobWait {
  readonly place: WaitPlace
  /** As in `FedTime.waits`; in the queue the dataset that was staged. */
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

/** The leases and feeds of a job on one node. */
interface JobOnNode {
  /** When it asked for datasets, and when it could read them. */
  readonly leases: { readonly dataset: string; readonly askedAtMs: number; readonly readAtMs: number }[]
  endedAtMs: number
  /** When the first trainer began to count; infinite without a feed. */
  fedSinceMs: number
  fedGpuMs: number
  /** By dataset: a job may have a feed each for training and validation, of which one trainer tells both. */
  readonly gpus: Map<string, number>
  readonly waits: Map<string, number>
  /** By dataset. */
  readonly steps: Map<string, StepBlocks[]>
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
    job.fedSinceMs = Math.min(job.fedSinceMs, event.atMs - sinceAgoMs)
    job.fedGpuMs += gpuMs
    job.gpus.set(event.dataset, Math.max(gpus, job.gpus.get(event.dataset) ?? 0))
    for (const [culprit, ms] of Object.entries(waits))
      job.waits.set(culprit, (job.waits.get(culprit) ?? 0) + ms)
    if (steps) job.steps.set(event.dataset, [...(job.steps.get(event.dataset) ?? []), steps])
  }

  #of(task: string, node: string): JobOnNode {
    const nodes = this.#jobs.get(task) ?? new Map<string, JobOnNode>()
    this.#jobs.set(task, nodes)
    const found = nodes.get(node) ?? {
      leases: [],
      endedAtMs: 0,
      fedSinceMs: Number.POSITIVE_INFINITY,
      fedGpuMs: 0,
      gpus: new Map<string, number>(),
      waits: new Map<string, number>(),
      steps: new Map<string, StepBlocks[]>(),
    }
    nodes.set(node, found)
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
  for (const node of nodes) {
    const own = node.gpus.size === 0 ? 1 : Math.max(...node.gpus.values())
    gpus += own
    gpuMs += own * sumQueue(node, (dataset, ms) => wait('queue', dataset, own * ms))
    if (node.fedGpuMs > 0) gpuMs += node.fedGpuMs
    else if (node.leases.length > 0) gpuMs += own * findUseMs(node, untilMs)
    addFedWaits(node, own, wait)
  }
  for (const { culprit, gpuMs } of findHeldUp(nodes)) wait(placeOf(culprit), culprit, gpuMs)
  const listed = [...waits.values()].sort((a, b) => b.gpuMs - a.gpuMs)
  const waitedGpuMs = listed.reduce((sum, each) => sum + each.gpuMs, 0)
  return { task, nodes: nodes.length, gpus, gpuMs, waitedGpuMs, waits: listed }
}

/** Whether a lease was asked for before training, so that its wait is not among those that trainers told. */
function isBefore({ fedSinceMs }: JobOnNode, { askedAtMs }: JobOnNode['leases'][number]): boolean {
  return askedAtMs < fedSinceMs
}

/** Time in the queue, ms. Time in which several datasets were staged side by side counts once. */
function sumQueue(node: JobOnNode, wait: (dataset: string, ms: number) => void): number {
  let [totalMs, countedUntilMs] = [0, 0]
  const before = node.leases.filter((lease) => lease.readAtMs > lease.askedAtMs && isBefore(node, lease))
  for (const { dataset, askedAtMs, readAtMs } of before.sort((a, b) => a.readAtMs - b.readAtMs)) {
    const endMs = Math.min(readAtMs, node.fedSinceMs)
    const ms = Math.max(0, endMs - Math.max(askedAtMs, countedUntilMs))
    countedUntilMs = Math.max(countedUntilMs, endMs)
    wait(dataset, ms)
    totalMs += ms
  }
  return totalMs
}

/** How long a job without a feed used its datasets, ms. */
function findUseMs({ leases, endedAtMs }: JobOnNode, untilMs: number): number {
  const beganAtMs = Math.min(...leases.map(({ readAtMs }) => readAtMs))
  return Math.max(0, (endedAtMs > beganAtMs ? endedAtMs : untilMs) - beganAtMs)
}

/** The waits that trainers told. A feed that stages its dataset itself starts late for that reason. */
function addFedWaits(
  node: JobOnNode,
  gpus: number,
  wait: (place: WaitPlace, culprit: string, gpuMs: number) => void,
): void {
  const staged = node.leases.filter((lease) => !isBefore(node, lease))
  const stagedGpuMs = gpus * Math.max(0, ...staged.map(({ askedAtMs, readAtMs }) => readAtMs - askedAtMs))
  for (const [culprit, gpuMs] of node.waits) {
    const queuedGpuMs = culprit === 'start' ? Math.min(gpuMs, stagedGpuMs) : 0
    wait('queue', staged[0]?.dataset ?? '', queuedGpuMs)
    wait(placeOf(culprit), culprit, gpuMs - queuedGpuMs)
  }
}

/** The waits of nodes for each other, in the steps over each dataset. */
function findHeldUp(nodes: readonly JobOnNode[]) {
  const datasets = new Set(nodes.flatMap(({ steps }) => [...steps.keys()]))
  return [...datasets].flatMap((dataset) =>
    findNodeHoldUps(
      nodes.flatMap(({ gpus, steps }) => {
        const told = steps.get(dataset)
        return told ? [{ gpus: gpus.get(dataset) ?? 1, steps: told }] : []
      }),
    ),
  )
}

function placeOf(culprit: string): WaitPlace {
  return parseCulprit(culprit).culprit === 'transform' ? 'transform' : 'feed'
}
