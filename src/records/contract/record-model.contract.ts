import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type CopySum, sumUpCopies } from '../../policy/copy-sums.js'
import { orderAll } from '../../testing/naive-order.js'
import type { NaiveRecord } from '../../testing/naive-record.js'
import { applyStep, type ModelWorld, newWorld } from './record-model-steps.contract.js'
import { type Step, stepsArbitrary } from './record-model-steps-arbitrary.contract.js'
import type { RecordStore } from './record-store.js'

/** Two clients of one record, and a way to empty it between histories. */
export interface ModelledRecord {
  readonly clients: readonly [RecordStore, RecordStore]
  reset(): Promise<void>
}

/** Fewer histories may miss the rarest outcome by chance. `npm run test:model` runs more. */
const RUNS_THAT_COVER = 3000

/** Independent records: histories run in all of them at once. */
export interface ModelledRecords {
  readonly records: readonly ModelledRecord[]
  close(): Promise<void>
}

/**
 * Compares a record adapter with the naive one over random histories: states × holders × clock × two nodes, each step
 * by one of two clients. DSC_TEST_MODEL_RUNS sets the number of histories, DSC_TEST_SEED the seed. Record n begins with
 * seed + n, so the seed that a failure names, alone, repeats it in the first.
 */
export function recordModelContract(engine: string, open: () => Promise<ModelledRecords>): void {
  const numRuns = Number(process.env.DSC_TEST_MODEL_RUNS ?? 300)
  const seed = Number(process.env.DSC_TEST_SEED ?? Date.now() % 1_000_000_007)
  test(`${engine} record agrees with a naive one in ${numRuns} random histories (DSC_TEST_SEED=${seed})`, async () => {
    const { records, close } = await open()
    const seen = new Map<string, number>()
    try {
      const ends = await Promise.allSettled(
        records.map(({ clients, reset }, index) =>
          fc.assert(
            fc.asyncProperty(stepsArbitrary, async (steps) => {
              await reset()
              await runHistory(clients, steps, seen)
            }),
            { numRuns: Math.ceil(numRuns / records.length), seed: seed + index },
          ),
        ),
      )
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    } finally {
      await close()
    }
    if (numRuns >= RUNS_THAT_COVER) assertCovered(seen)
  })
}

async function runHistory(
  clients: ModelledRecord['clients'],
  steps: readonly Step[],
  seen: Map<string, number>,
): Promise<void> {
  const world = newWorld()
  const times = new Set<number>()
  for (const step of steps) {
    world.nowMs += step.afterMs
    while (times.has(world.nowMs)) world.nowMs += 1 // copies are ordered by time, so steps never share one
    times.add(world.nowMs)
    const label = await applyStep(clients[step.client], world, step)
    seen.set(label, (seen.get(label) ?? 0) + 1)
    if (step.isCompared || step === steps.at(-1)) await assertSame(clients[1 - step.client]!, world)
    assertLawful(world.model)
  }
}

async function assertSame(record: RecordStore, { model, nowMs }: ModelWorld): Promise<void> {
  const byId = <T>(rows: readonly T[], id: (row: T) => string) =>
    rows.toSorted((a, b) => (id(a) < id(b) ? -1 : 1))
  assert.deepEqual(
    byId(await record.listCopies({}, nowMs), ({ copyId }) => copyId),
    byId(model.uses({}, nowMs), ({ copyId }) => copyId),
  )
  const asText = (sums: readonly CopySum[]) =>
    sums.map((sum) => JSON.stringify(Object.entries(sum).sort())).sort()
  assert.deepEqual(asText(await record.sumCopies({}, nowMs)), asText(sumUpCopies(model.uses({}, nowMs))))
  for (const { node, dataset } of model.copies) {
    const asked = { node, dataset, limit: 2 }
    const copies = model.uses({ node }, nowMs)
    assert.deepEqual(await record.foreseeOrder(asked, nowMs), orderAll(copies, asked))
  }
  assert.deepEqual(
    byId(await record.listLeases({}), ({ leaseId }) => leaseId),
    byId(model.placedLeases(), ({ leaseId }) => leaseId),
  )
}

/** Invariants after every step of any history. */
function assertLawful(model: NaiveRecord): void {
  const count = (keys: readonly string[]) =>
    Math.max(
      0,
      ...Map.groupBy(keys, (key) => key)
        .values()
        .map(({ length }) => length),
    )
  const { copies, leases } = model
  const underWay = copies.filter(({ state }) => state === 'reserved' || state === 'staging')
  assert.ok(
    count(underWay.map(({ dataset, node }) => `${dataset} ${node}`)) <= 1,
    'two stagings of one dataset',
  )
  const versions = copies.filter(({ state }) => state === 'ready' || state === 'staging')
  assert.ok(
    count(versions.map(({ dataset, node, version }) => `${dataset} ${node} ${version}`)) <= 1,
    'one version twice on a node',
  )
  const stagers = leases.filter(({ purpose }) => purpose === 'stage')
  assert.ok(count(stagers.map(({ copyId }) => copyId)) <= 1, 'two stagers of one copy')
  for (const { copyId } of leases) {
    const copy = copies.find((candidate) => candidate.copyId === copyId)
    assert.ok(copy && copy.state !== 'evicting', 'a lease on a copy that is going or gone')
  }
}

/** The histories are only worth something if they reach these outcomes. */
function assertCovered(seen: ReadonlyMap<string, number>): void {
  for (const label of [
    ...['join ready', 'join wait', 'join stage', 'admit admit', 'admit refuse', 'admit wait', 'admit lost'],
    ...['charge admit', 'charge refuse', 'charge wait', 'charge gone'],
    ...['admit same-version', 'ready true', 'ready false', 'end', 'evict some', 'evict none', 'finish true'],
    ...[
      'adopt true',
      'adopt false',
      'forget some',
      'lock some',
      'hand over true',
      'expire some',
      'release some',
    ],
  ]) {
    assert.ok((seen.get(label) ?? 0) > 0, `no history reached "${label}": ${JSON.stringify([...seen])}`)
  }
}
