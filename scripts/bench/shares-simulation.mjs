// Three groups on a cluster, one of them greedy: simulated time, the real admission and eviction; for shares.mjs.
import { planAdmission } from '../../dist/policy/plan-admission.js'

const GIB = 1024 ** 3
const MINUTE = 60_000
const CAPACITY = 4096 * GIB
/** Staging takes so many bytes per ms: 1 GiB/s. */
const STAGE_BYTES_PER_MS = GIB / 1000
/** A job that is refused asks again after this. */
const RETRY_MS = 10 * MINUTE

/** How the groups behave. `every`: minutes between two jobs on the whole cluster; `runs`: minutes a job takes. */
export const GROUPS = [
  { party: 'group:vision', title: 'vision', datasets: 40, every: 6, runs: [60, 180], isSweep: false },
  { party: 'group:speech', title: 'speech', datasets: 40, every: 6, runs: [60, 180], isSweep: false },
  { party: 'group:greedy', title: 'greedy', datasets: 3000, every: 1, runs: [30, 90], isSweep: true },
]

/**
 * Plays `days` of jobs on `nodes` nodes. A group of the first kind comes back to its datasets by Zipf's law, each with
 * a few nodes that it prefers; the greedy one reads a new dataset every minute and hardly ever comes back.
 * Returns for each group its jobs, hits, refusals, waits in ms, and bytes fetched.
 */
export function simulateShares({ nodes, days, seed, shares }) {
  const random = mulberry32(seed)
  const groups = GROUPS.map((group) => ({
    ...group,
    sizes: Array.from({ length: group.datasets }, () => Math.round((40 + 360 * random() ** 2) * GIB)),
    result: { jobs: 0, hits: 0, refusals: 0, waitsMs: [], fetchedBytes: 0 },
  }))
  const policy = { maxPercent: 80, ...(shares && { shares }) }
  const cluster = Array.from({ length: nodes }, () => [])
  const jobs = planJobs(groups, { nodes, days, random })
  const queue = new EventQueue(jobs.map((job) => ({ atMs: job.atMs, run: () => begin(job, job.atMs) })))
  const begin = (job, nowMs) => {
    const copies = cluster[job.node]
    const { result } = job.group
    const found = copies.find(({ dataset }) => dataset === job.dataset)
    if (found === undefined) {
      const admission = admit(copies, { policy, job })
      if (admission.outcome !== 'admit') {
        result.refusals += 1
        queue.add({ atMs: nowMs + RETRY_MS, run: () => begin(job, nowMs + RETRY_MS) })
        return
      }
      const gone = new Set(admission.plan.victims.map(({ copy }) => copy.copyId))
      cluster[job.node] = copies.filter(({ copyId }) => !gone.has(copyId))
      cluster[job.node].push(newCopy(job, nowMs))
      result.fetchedBytes += job.bytes
    } else if (nowMs === job.atMs) result.hits += 1
    const copy = cluster[job.node].find(({ dataset }) => dataset === job.dataset)
    const readyMs = Math.max(nowMs, copy.readyAtMs)
    Object.assign(copy, {
      referenceCount: copy.referenceCount + 1,
      lastUsedAtMs: nowMs,
      parties: [job.group.party],
    })
    result.jobs += 1
    result.waitsMs.push(readyMs - job.atMs)
    queue.add({
      atMs: readyMs + job.runsMs,
      run: () => {
        copy.referenceCount -= 1
      },
    })
  }
  queue.runAll()
  return groups.map(({ party, title, result }) => ({ party, title, ...result }))
}

/** The jobs in the order of their beginning. */
function planJobs(groups, { nodes, days, random }) {
  const jobs = []
  for (const group of groups) {
    const weights = group.sizes.map((_, index) => 1 / (index + 1) ** 0.8)
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    let swept = 0
    for (let atMs = 0; atMs < days * 24 * 60 * MINUTE; ) {
      atMs += -Math.log(1 - random()) * group.every * MINUTE
      const index = group.isSweep ? swept++ % group.datasets : pick(weights, total * random())
      // Jobs of a dataset go to one of four nodes, as `dsc hint --prefer` has it.
      const node = group.isSweep
        ? Math.floor(random() * nodes)
        : (index * 7 + Math.floor(random() * 4) * 5) % nodes
      const [least, most] = group.runs
      jobs.push({
        atMs,
        group,
        node,
        dataset: `${group.title}-${index}`,
        bytes: group.sizes[index],
        runsMs: (least + (most - least) * random()) * MINUTE,
      })
    }
  }
  return jobs
}

function admit(copies, { policy, job }) {
  const used = copies.reduce((sum, { chargedBytes }) => sum + chargedBytes, 0)
  const asked = {
    ...newCopy(job, 0),
    copyId: 'asked',
    state: 'reserved',
    chargedBytes: 0,
    parties: [job.group.party],
  }
  return planAdmission({
    policy,
    disk: { capacityBytes: CAPACITY, freeBytes: CAPACITY - used, inodesTotal: 0, inodesFree: 0 },
    copies: [...copies, asked],
    request: { datasets: 1, bytes: job.bytes, inodes: 0 },
    requestCopyId: 'asked',
  })
}

let made = 0
/** A copy whose bytes are all there at once, as far as the policy is concerned; `readyAtMs` says when jobs may begin. */
function newCopy(job, nowMs) {
  made += 1
  return {
    copyId: `copy-${made}`,
    dataset: job.dataset,
    version: 'v',
    state: 'ready',
    source: { name: job.dataset },
    chargedBytes: job.bytes,
    chargedInodes: 0,
    writtenBytes: job.bytes,
    lock: null,
    lastUsedAtMs: nowMs,
    readyAtMs: nowMs + job.bytes / STAGE_BYTES_PER_MS,
    referenceCount: 0,
    isBeingStaged: false,
  }
}

/** Events by time; equal ones in the order in which they were added. */
class EventQueue {
  #heap = []
  #added = 0

  constructor(events) {
    for (const event of events) this.add(event)
  }

  add(event) {
    const heap = this.#heap
    heap.push({ ...event, order: this.#added++ })
    for (let index = heap.length - 1; index > 0; ) {
      const parent = (index - 1) >> 1
      if (isBefore(heap[parent], heap[index])) break
      ;[heap[parent], heap[index]] = [heap[index], heap[parent]]
      index = parent
    }
  }

  runAll() {
    while (this.#heap.length > 0) this.#take().run()
  }

  #take() {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (heap.length === 0) return first
    heap[0] = last
    for (let index = 0; ; ) {
      const [left, right] = [2 * index + 1, 2 * index + 2]
      let least = index
      if (left < heap.length && isBefore(heap[left], heap[least])) least = left
      if (right < heap.length && isBefore(heap[right], heap[least])) least = right
      if (least === index) return first
      ;[heap[least], heap[index]] = [heap[index], heap[least]]
      index = least
    }
  }
}

function isBefore(one, other) {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

function pick(weights, at) {
  let left = at
  for (const [index, weight] of weights.entries()) {
    left -= weight
    if (left < 0) return index
  }
  return weights.length - 1
}

function mulberry32(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296
  }
}
