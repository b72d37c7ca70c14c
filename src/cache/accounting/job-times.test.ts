import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeFedTime, type FedTime } from '../../model/fed-time.js'
import type { RecordEvent } from '../../model/record-event.js'
import { JobTimes } from './job-times.js'

const NOW_MS = 1_000_000
const BASE = { sequence: 0, node: 'gpu-01', dataset: 'laion', copyId: null, task: 'job', reason: '' }

function leased(atMs: number, waitedMs: number, dataset = 'laion'): RecordEvent {
  return { ...BASE, dataset, kind: 'leased', atMs, detail: { waitedMs } }
}

/** It could read after `waitedMs`, during its download, which took `readyMs`. */
function arrived(atMs: number, waitedMs: number, readyMs: number): RecordEvent {
  return { ...leased(atMs, waitedMs), detail: { waitedMs, readyMs } }
}

function released(atMs: number): RecordEvent {
  return { ...BASE, kind: 'released', atMs, detail: {} }
}

function fed(atMs: number, time: Partial<FedTime>, place: Partial<RecordEvent> = {}): RecordEvent {
  const told = { sinceAgoMs: 1000, gpus: 1, gpuMs: 1000, waits: {}, ...time }
  return { ...BASE, ...describeFedTime(told, atMs), ...place }
}

/** A job of which gpu-02 stages for 4 s longer than the other nodes. `waitedMs`: for the disk, in the second step. */
function staged(
  nodes: readonly { readonly sinceMs: number; readonly setupMs: number; readonly waitedMs?: number }[],
  untilMs: (sinceMs: number) => number = () => 8000,
): RecordEvent[] {
  return nodes.flatMap(({ sinceMs, setupMs, waitedMs = 0 }, at) => {
    const node = `gpu-0${at + 1}`
    const gpuMs = untilMs(sinceMs) - sinceMs
    const blocks = [[0, 1, 0, setupMs] as const, [1, 1, waitedMs, gpuMs - setupMs - waitedMs] as const]
    const causes = waitedMs > 0 ? { [`disk of rank ${at}`]: waitedMs } : {}
    const time = { sinceAgoMs: gpuMs, gpuMs, steps: { size: 1, blocks, causes } }
    const lease = at === 1 ? leased(5000, 4000) : leased(1000, 0)
    return [{ ...lease, node }, fed(untilMs(sinceMs), time, { node })]
  })
}

for (const { name, events, gpus, gpuMs, waits } of [
  {
    name: 'without a feed counts from its dataset to its release, one GPU a node',
    events: [leased(5000, 1000), released(9000)],
    gpus: 1,
    gpuMs: 5000,
    waits: ['queue laion 1000'],
  },
  {
    name: 'that still runs counts until now',
    events: [leased(NOW_MS - 5000, 0)],
    gpus: 1,
    gpuMs: 5000,
    waits: [],
  },
  {
    name: 'counts its wait for staging once for every GPU of its trainers',
    events: [
      leased(5000, 1000),
      fed(9000, { sinceAgoMs: 4000, gpus: 8, gpuMs: 32_000, waits: { disk: 800 } }),
    ],
    gpus: 8,
    gpuMs: 40_000,
    waits: ['queue laion 8000', 'feed disk 800'],
  },
  {
    name: 'that reads during the download waited until its first sample',
    events: [arrived(9000, 1000, 8000), released(12_000)],
    gpus: 1,
    gpuMs: 11_000,
    waits: ['queue laion 1000'],
  },
  {
    name: 'counts datasets that were staged side by side each moment once',
    events: [leased(5000, 3000), leased(6000, 2000, 'birds'), fed(7000, {})],
    gpus: 1,
    gpuMs: 5000,
    waits: ['queue laion 3000', 'queue birds 1000'],
  },
  {
    name: 'whose feed stages the dataset waits for staging, as long as its trainers told, not twice',
    events: [
      fed(9000, { sinceAgoMs: 8000, gpuMs: 8000, waits: { start: 3000, transform: 500 } }),
      leased(5000, 2500),
    ],
    gpus: 1,
    gpuMs: 8000,
    waits: ['queue laion 2500', 'feed start 500', 'transform transform 500'],
  },
  {
    name: 'whose ranks waited for each other waited for what the last of them waited for',
    events: [fed(2000, { waits: { 'transform of rank 3': 300, 'disk of rank 3': 100 } })],
    gpus: 1,
    gpuMs: 1000,
    waits: ['transform transform of rank 3 300', 'feed disk of rank 3 100'],
  },
  {
    name: 'whose nodes waited for each other waited for what the rank behind waited for',
    events: [
      fed(2000, { gpus: 2, gpuMs: 280, steps: { size: 1, blocks: [[0, 1, 0, 140]], causes: {} } }),
      fed(
        2000,
        {
          waits: { transform: 40 },
          steps: { size: 1, blocks: [[0, 1, 40, 100]], causes: { 'transform of rank 3': 40 } },
        },
        { node: 'gpu-02' },
      ),
    ],
    gpus: 3,
    gpuMs: 1280,
    waits: ['transform transform of rank 3 80', 'transform transform 40'],
  },
  {
    name: 'waits at its first barrier for the node that stages longest',
    events: staged([
      { sinceMs: 2000, setupMs: 4500 },
      { sinceMs: 6000, setupMs: 500 },
    ]),
    gpus: 2,
    gpuMs: 12_000,
    waits: ['queue laion 4000', 'queue laion on gpu-02 4000'],
  },
  {
    name: 'tells waits for a node that stages longest from those for another that reads slowly',
    events: staged([
      { sinceMs: 2000, setupMs: 4500 },
      { sinceMs: 6000, setupMs: 500 },
      { sinceMs: 2000, setupMs: 4500, waitedMs: 50 },
    ]),
    gpus: 3,
    gpuMs: 18_000,
    waits: ['queue laion on gpu-02 8000', 'queue laion 4000', 'feed disk of rank 2 100'],
  },
  {
    name: 'that begins on all nodes at once waits for the node that stages longest',
    events: staged([
      { sinceMs: 6000, setupMs: 500 },
      { sinceMs: 6300, setupMs: 200 },
    ]),
    gpus: 2,
    gpuMs: 11_700,
    waits: ['queue laion 4000', 'queue laion on gpu-02 4000'],
  },
  {
    name: 'whose nodes train apart waits for no node that stages longer',
    events: staged(
      [
        { sinceMs: 2000, setupMs: 900 },
        { sinceMs: 6000, setupMs: 500 },
      ],
      (sinceMs) => sinceMs + 2000,
    ),
    gpus: 2,
    gpuMs: 8000,
    waits: ['queue laion 4000'],
  },
  {
    name: 'waits in its first step for the node whose feed stages longest',
    events: [
      leased(1000, 0),
      fed(6000, {
        gpus: 1,
        gpuMs: 5000,
        sinceAgoMs: 5000,
        steps: { size: 1, blocks: [[0, 2, 0, 5000]], causes: {} },
      }),
      { ...leased(5000, 4000), node: 'gpu-02' },
      fed(
        6000,
        {
          ...{ gpus: 1, gpuMs: 5000, sinceAgoMs: 5000, waits: { start: 4200 } },
          steps: { size: 1, blocks: [[0, 2, 4200, 800]], causes: { 'start of rank 1': 4200 } },
        },
        { node: 'gpu-02' },
      ),
    ],
    gpus: 2,
    gpuMs: 10_000,
    waits: ['queue laion 4000', 'queue laion on gpu-02 4000', 'feed start 200', 'feed start of rank 1 200'],
  },
  {
    name: 'adds up its feeds, nodes and times',
    events: [
      fed(2000, { waits: { store: 100 } }),
      fed(3000, { waits: { store: 100 } }),
      fed(3000, { waits: { store: 100 } }, { dataset: 'birds' }),
      fed(3000, { gpus: 4, gpuMs: 4000 }, { node: 'gpu-02' }),
    ],
    gpus: 5,
    gpuMs: 7000,
    waits: ['feed store 300'],
  },
])
  test(`a job ${name}`, () => {
    for (const order of [events, events.toReversed()]) {
      const times = new JobTimes()
      for (const event of order) times.add(event)
      const [job] = times.list(NOW_MS)
      assert.equal(job!.gpus, gpus)
      assert.equal(job!.gpuMs, gpuMs)
      assert.deepEqual(
        job!.waits.map((wait) => `${wait.place} ${wait.culprit} ${wait.gpuMs}`),
        waits,
      )
    }
  })
