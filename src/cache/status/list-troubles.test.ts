import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleStatus } from '../../testing/example-status.js'
import { describeTroubles, listTroubles } from './list-troubles.js'

const status = exampleStatus(3)
const refusal = status.waits.find(({ kind }) => kind === 'room')!
const waiting = { ...refusal, kind: 'staging' } as const
const [node] = status.nodes
const full = { ...node!.usage, diskBytes: { used: 10, allowed: 10 } }
const short = { ...node!.usage, free: { freeBytes: 1024, minFreeBytes: 4096 } }

for (const { name, waits, usage, says } of [
  {
    name: 'the latest refusal',
    waits: [refusal, { ...refusal, task: 'b' }],
    usage: full,
    says: /^2 refused: b wants/,
  },
  {
    name: 'the first line of its reason',
    waits: [{ ...refusal, reason: 'too big\n  in use: x' }],
    usage: full,
    says: /^1 refused: job-4711 wants laion-huge on gpu-01 \(too big\)$/,
  },
  {
    name: 'a disk that others filled',
    waits: [],
    usage: short,
    says: /^1 disk short: gpu-01 has 1 KiB free of minFree 4 KiB$/,
  },
  { name: 'nothing of a full cache', waits: [], usage: full, says: undefined },
  { name: 'nothing of a job that waits for its download', waits: [waiting], usage: full, says: undefined },
]) {
  test(`what is wrong says ${name}`, () => {
    const trouble = describeTroubles(
      listTroubles({
        takenAtMs: status.takenAtMs,
        waits,
        nodes: [{ ...node!, usage }],
        events: [],
        copies: status.copies,
      }),
    )
    if (says === undefined) assert.equal(trouble, undefined)
    else assert.match(trouble ?? '', says)
  })
}

test('a copy that was found damaged is wrong until it is repaired or gone', () => {
  const [copy] = status.copies
  const { copyId, dataset, node: place } = copy!
  const event = { ...status.events[0]!, copyId, dataset, node: place }
  const damaged = { ...event, kind: 'damaged', reason: '2 of 9 files' } as const
  const repaired = { ...event, kind: 'repaired' } as const
  const told = (events: typeof status.events, copies = status.copies) =>
    listTroubles({ takenAtMs: status.takenAtMs, waits: [], nodes: [], events, copies })
  assert.deepEqual(
    told([damaged]).map(({ text, command }) => [text, command]),
    [[`${dataset} on ${place} (2 of 9 files)`, `dsc verify ${dataset} --repair`]],
  )
  assert.deepEqual(told([repaired, damaged]), [], 'events are newest first')
  assert.equal(told([damaged, repaired]).length, 1)
  assert.deepEqual(told([damaged], []), [])
})

test('an agent that fell silent is wrong for a day; one that stopped, or never was, is not', () => {
  const { takenAtMs } = status
  const silentFor = (minutes: number) => ({ url: 'http://gpu-01:1', seenAtMs: takenAtMs - minutes * 60_000 })
  const kinds = (agent: ReturnType<typeof silentFor> | null | undefined) =>
    listTroubles({ takenAtMs, waits: [], events: [], copies: [], nodes: [{ ...node!, agent }] }).map(
      ({ kind }) => kind,
    )
  assert.deepEqual(kinds(silentFor(3)), ['silent'])
  for (const agent of [silentFor(1), silentFor(25 * 60), null, undefined]) assert.deepEqual(kinds(agent), [])
})
