import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MemoryProfile, ProfiledTensor, StepPlace } from '../step/profile.js'
import { chooseRecipe, compareRecipes, type RecipeName } from './compare-recipes.js'
import { offloadCalls } from './offload-calls.js'
import { type OffloadRule, offloadAsTorchtune, offloadAsTrl, saveOnCpu } from './offload-rules.js'

const MIB = 2 ** 20
const LAYERS = 8

/** A tensor that a layer saves: how many MiB, and what else is special about it. */
type Save = Partial<ProfiledTensor> & { readonly mebibytes?: number }

/** A chain of layers of 1 ms each way, each with its saved tensors; equal storages are one. */
function chain(savesOf: (layer: number) => readonly Save[]): MemoryProfile {
  const saves = Array.from({ length: LAYERS }, (_, layer) =>
    savesOf(layer).map((save) => ({ layer, save })),
  ).flat()
  const order = Array.from({ length: LAYERS }, (_, at) => LAYERS - 1 - at).flatMap((layer) =>
    saves.flatMap((one, sequence) => (one.layer === layer ? [sequence] : [])),
  )
  const at = (layer: number, phase: StepPlace['phase']): StepPlace => ({ layer, phase })
  const tensors = saves.map(
    ({ layer, save: { mebibytes = 1, ...save } }, sequence): ProfiledTensor => ({
      ...{
        id: sequence,
        kind: 'feature',
        bytes: mebibytes * MIB,
        dtype: 'f32',
        storage: sequence,
        offset: 0,
      },
      ...{
        shape: [mebibytes * 512, 512],
        stride: [512, 1],
        producer: at(layer, 'fwd'),
        heldUntil: at(layer, 'fwd'),
      },
      ...{
        uses: [at(layer, 'bwd_param'), at(layer, 'bwd_feat')],
        alive: [at(layer, 'fwd'), at(layer, 'bwd_feat')],
      },
      ...{ pack: [sequence], unpack: [order.indexOf(sequence)], refs: 1 },
      ...save,
    }),
  )
  return {
    v: 1,
    kind: 'dsc.mem.profile',
    signature: '',
    model: '',
    device: { name: 'a GPU', bytes: 2 ** 34, d2hGBs: 1, h2dGBs: 1, bothGBs: 1, copyLatencyUs: 0 },
    host: { bytes: 2 ** 34, pinnable: 2 ** 34 },
    layers: Array.from({ length: LAYERS }, (_, i) => ({
      ...{ i, name: `layer${i}`, fwdUs: 1000, bwdParamUs: 500, bwdFeatUs: 500 },
      ...{ prev: i > 0 ? [i - 1] : [], next: i + 1 < LAYERS ? [i + 1] : [], fused: true },
    })),
    tensors,
    peak: { bytes: 0, at: '' },
    nonTorchBytes: 0,
    packLayers: saves.map(({ layer }) => layer),
    unpackOrder: order,
    unpackLayers: order.map((sequence) => saves[sequence]!.layer),
  }
}

const WEIGHT: Save = { kind: 'param', shape: [512, 512], stride: [1, 512] }
const stepOf = (profile: MemoryProfile, recipe: string) =>
  compareRecipes(profile, { budgetBytes: 2 ** 34 }).steps.find((step) => step.recipe === recipe)!

test('a recipe that moves every map keeps one at a time, and computation waits for each copy', () => {
  const plain = chain(() => [{}])
  assert.equal(stepOf(plain, 'keep').peakBytes, LAYERS * MIB)
  const moved = stepOf(plain, 'saveOnCpu')
  assert.deepEqual([moved.peakBytes, moved.movedBytes, moved.why], [MIB, 2 * LAYERS * MIB, undefined])
  const copyMs = MIB / 1e6
  assert.ok(Math.abs(moved.stepMs - (2 * LAYERS + 2 * LAYERS * copyMs)) < 1e-6)
})

for (const { name, rule, save, sequences } of [
  { name: 'save_on_cpu moves weights', rule: saveOnCpu, save: WEIGHT, sequences: LAYERS },
  { name: 'torchtune moves transposed weights', rule: offloadAsTorchtune, save: WEIGHT, sequences: LAYERS },
  {
    name: 'torchtune keeps parameters',
    rule: offloadAsTorchtune,
    save: { ...WEIGHT, stride: [512, 1] },
    sequences: 0,
  },
  { name: 'TRL keeps weights', rule: offloadAsTrl, save: WEIGHT, sequences: 0 },
  {
    name: 'TRL keeps a shared weight',
    rule: offloadAsTrl,
    save: { ...WEIGHT, kind: 'buffer' },
    sequences: 0,
  },
  {
    name: 'both keep tensors below 1 KiB',
    rule: offloadAsTrl,
    save: { shape: [255], stride: [1] },
    sequences: 0,
  },
  { name: 'save_on_cpu moves them', rule: saveOnCpu, save: { shape: [255], stride: [1] }, sequences: LAYERS },
] satisfies { name: string; rule: OffloadRule; save: Save; sequences: number }[]) {
  test(`${name}`, () => {
    assert.equal(
      offloadCalls(
        chain(() => [save]),
        rule,
      ).moved.length,
      sequences,
    )
  })
}

test('a weight that moves frees nothing, as the model holds it, and its copy comes on top', () => {
  const profile = chain(() => [WEIGHT])
  const step = stepOf(profile, 'torchtune')
  assert.ok(step.freedBytes < 0 && step.movedBytes > 0)
  assert.match(step.why!, /^the peak is at /)
  assert.equal(stepOf(profile, 'trl').why, 'autograd saves no tensor that it would move')
})

test('TRL keeps a tensor that is saved again at once: it has moved, and frees nothing', () => {
  const twice = chain((layer) => [{ storage: layer }, { storage: layer }])
  const step = stepOf(twice, 'trl')
  assert.equal(offloadCalls(twice, offloadAsTrl).moved.length, LAYERS)
  assert.ok(step.movedBytes > 0 && step.freedBytes <= 0)
  assert.ok(stepOf(twice, 'saveOnCpu').freedBytes > 0)
})

test('tools with streams hold the last five tensors, and hide copies behind the forward', () => {
  const plain = chain(() => [{}])
  const { profile, waitUs } = offloadCalls(plain, offloadAsTorchtune)
  const forward = profile.tensors.filter(({ kind }) => kind === 'feature')
  assert.deepEqual(forward.map(({ alive }) => alive![1].layer).slice(0, 3), [5, 6, 7])
  assert.ok(waitUs < offloadCalls(plain, saveOnCpu).waitUs)
  const onCpu = { ...plain, device: { ...plain.device, name: 'cpu (accounting)' } }
  assert.ok(offloadCalls(onCpu, offloadAsTorchtune).waitUs > waitUs, 'a CPU copies by itself')
})

test('hooks, checkpoints and copies of a plan take time of a CPU, and none of a GPU', () => {
  const blocks = Array.from({ length: 2 }, (_, at) => ({
    ...{
      name: `h.${at}`,
      call: 0,
      layers: [4 * at, 4 * at + 3] as const,
      packs: [4 * at, 4 * at + 4] as const,
    },
    ...{ inputs: [], buffers: [] },
  }))
  const plain = chain(() => [{}])
  const layers = plain.layers.map((one) => ({ ...one, name: `h.${Math.floor(one.i / 4)}.${one.i}` }))
  const device = { ...plain.device, name: 'cpu (accounting)' }
  const stepsOf = (hookUs: number | undefined, budgetBytes: number) =>
    new Map(
      compareRecipes({ ...plain, layers, blocks, device: { ...device, hookUs } }, { budgetBytes }).steps.map(
        ({ recipe, stepMs }) => [recipe, stepMs],
      ),
    )
  const [without, hooked] = [stepsOf(undefined, 2 ** 34), stepsOf(1000, 2 ** 34)]
  const longer = (recipe: RecipeName) => hooked.get(recipe)! - without.get(recipe)!
  assert.equal(longer('keep'), 0)
  assert.ok(Math.abs(longer('saveOnCpu') - 0.7 * LAYERS) < 1e-6)
  assert.ok(longer('torchtune') > longer('saveOnCpu') && longer('trl') > longer('torchtune'))
  assert.ok(Math.abs(longer('checkpoint') - (2 * 22 + 2.8 * LAYERS)) < 1e-6)
  const moving = { ...plain, device: { ...device, d2hGBs: 1000, h2dGBs: 1000, bothGBs: 1000 } }
  const dscMs = (hookUs: number | undefined) =>
    compareRecipes({ ...moving, device: { ...moving.device, hookUs } }, { budgetBytes: 6 * MIB }).steps.find(
      ({ recipe }) => recipe === 'dsc',
    )!
  const [hidden, counted] = [dscMs(undefined), dscMs(0)]
  assert.ok(hidden.movedBytes > 0)
  assert.ok(
    Math.abs(counted.stepMs - 2 * LAYERS - hidden.movedBytes / 1e9) < 1e-6,
    'nothing hides its copies',
  )
})

test('TRL copies a transposed map in order, which a CPU does slowly', () => {
  const plain = chain(() => [{ stride: [1, 512] }])
  const onCpu = { ...plain, device: { ...plain.device, name: 'cpu (accounting)' } }
  const copyUs = MIB / 1e3
  assert.ok(Math.abs(offloadCalls(onCpu, offloadAsTrl).waitUs - (8 + 2) * LAYERS * copyUs) < 11 * copyUs)
  assert.ok(offloadCalls(onCpu, offloadAsTrl).waitUs > 4 * offloadCalls(onCpu, offloadAsTorchtune).waitUs)
})

test('checkpoints say why no block can have one, and free memory where blocks can', () => {
  const blocks = Array.from({ length: 2 }, (_, at) => ({
    ...{
      name: `h.${at}`,
      call: 0,
      layers: [4 * at, 4 * at + 3] as const,
      packs: [4 * at, 4 * at + 4] as const,
    },
    ...{ inputs: [], buffers: [], obstacle: 'changes a cache' },
  }))
  const named = chain(() => [{}])
  const profile = {
    ...named,
    layers: named.layers.map((one) => ({ ...one, name: `h.${Math.floor(one.i / 4)}.${one.i}` })),
  }
  assert.equal(stepOf({ ...profile, blocks }, 'checkpoint').why, 'h.0 cannot run again: it changes a cache')
  assert.ok(
    stepOf({ ...profile, blocks: blocks.map(({ obstacle: _, ...one }) => one) }, 'checkpoint').freedBytes > 0,
  )
})

for (const { name, budgetBytes, best } of [
  { name: 'the shortest step of those that fit', budgetBytes: 60, best: 'trl' },
  { name: 'the simplest of those that are as good', budgetBytes: 100, best: 'keep' },
  { name: 'none where none fits', budgetBytes: 10, best: undefined },
]) {
  test(`the best recipe is ${name}`, () => {
    const steps = [
      { recipe: 'keep' as const, peakBytes: 100, stepMs: 10.1 },
      { recipe: 'saveOnCpu' as const, peakBytes: 50, stepMs: 30 },
      { recipe: 'trl' as const, peakBytes: 60, stepMs: 20 },
      { recipe: 'dsc' as const, peakBytes: 100, stepMs: 10 },
    ]
    assert.equal(chooseRecipe(steps, budgetBytes), best)
  })
}
