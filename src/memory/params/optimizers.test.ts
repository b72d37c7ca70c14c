import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeGradient, TOY_SGD, TOY_SLOTS, TOY_VALUES } from '../../testing/toy-model.js'
import { CentralNode } from './central-node.js'
import type { CentralOptions } from './central-options.js'
import { readCheckpoint } from './checkpoint.js'
import { narrowParameters } from './half-parameters.js'
import { openParameterClient } from './parameter-client.js'
import type { AdamwSettings, OptimizerSettings } from './plan/optimizer-settings.js'
import { layOutParameters, type ParameterSlot } from './plan/parameter-layout.js'
import { serveParameters } from './serve-parameters.js'

const ADAMW: AdamwSettings = {
  kind: 'adamw',
  learningRate: 0.01,
  betas: [0.9, 0.999],
  epsilon: 1e-8,
  weightDecay: 0.1,
}
const OPTIONS: CentralOptions = {
  mode: { kind: 'sync' },
  workers: 1,
  optimizer: ADAMW,
  isMean: true,
  lost: { kind: 'abort' },
  lostAfterMs: 60_000,
  checkpointEvery: 1,
}

async function serve(t: TestContext, options: Partial<CentralOptions>, slots = TOY_SLOTS) {
  const node = new CentralNode({ ...OPTIONS, ...options })
  const server = await serveParameters(node, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const values = Float32Array.from({ length: layOutParameters(slots).length }, (_, at) => Math.sin(at))
  const connect = async (rank: number, pushType: 'f32' | 'f16' = 'f32') => {
    const client = await openParameterClient({ url: server.url, rank, slots, values, pushType })
    t.after(() => client.close())
    await client.pull()
    return client
  }
  return { node, connect, values }
}

/** Steps a node of its own, without a server, and returns its parameters. */
async function stepAlone(optimizer: OptimizerSettings, steps: number): Promise<Float32Array> {
  const node = new CentralNode({ ...OPTIONS, optimizer })
  await node.begin(TOY_SLOTS, TOY_VALUES)
  for (let step = 0; step < steps; step++) await pushTo(node, step)
  return node.state!.parameters
}

function pushTo(node: CentralNode, step: number, learningRate?: number) {
  const gradient = makeGradient(node.state!.parameters, 0, step)
  const key = { rank: 0, epoch: node.epoch, step, baseVersion: node.version }
  return node.push(key, gradient, { learningRate })
}

test('a learning rate that comes with every push, and one that is set, are what a push is applied with', async () => {
  const named = new CentralNode(OPTIONS)
  const set = new CentralNode(OPTIONS)
  for (const node of [named, set]) await node.begin(TOY_SLOTS, TOY_VALUES)
  for (let step = 0; step < 6; step++) {
    await pushTo(named, step, 0.01 / (step + 1))
    await set.change({ learningRate: 0.01 / (step + 1) })
    await pushTo(set, step)
  }
  assert.deepEqual(named.state!.parameters, set.state!.parameters)
  assert.notDeepEqual(named.state!.parameters, await stepAlone(ADAMW, 6))
  assert.equal(named.optimizer.learningRate, 0.01, 'a rate of one push is for that update alone')
})

test('ranks of one step that push with unlike learning rates are told so, both by name', async (t) => {
  const { connect } = await serve(t, { workers: 2 })
  const [one, other] = [await connect(0), await connect(1)]
  const gradient = new Float32Array(one!.layout.length)
  await one!.push(gradient, 0, { learningRate: 0.1 })
  await assert.rejects(other!.push(gradient, 0, { learningRate: 0.2 }), {
    code: 'PARAMS_REFUSED',
    message: 'rank 1, step 0: it pushes with 0.2, rank 0 with 0.1',
  })
  assert.equal((await other!.push(gradient, 0, { learningRate: 0.1 })).state, 'applied')
})

test('a change that the optimizer does not have, or out of range, is refused and changes nothing', async (t) => {
  const { node, connect } = await serve(t, {})
  const client = await connect(0)
  await assert.rejects(client.change({ momentum: 0.5 }), /adamw has no momentum/)
  await assert.rejects(client.change({ learningRate: -1 }), { code: 'PARAMS_REFUSED' })
  assert.deepEqual(node.optimizer, ADAMW)
  await client.change({ learningRate: 0.5, maxNorm: 2 })
  assert.deepEqual(node.optimizer, { ...ADAMW, learningRate: 0.5, maxNorm: 2 })
  await client.change({ maxNorm: 0 })
  assert.equal(node.optimizer.maxNorm, undefined)
})

test('a job that is stopped in the middle goes on bit by bit, with what was changed in it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-params-'))
  try {
    const options = { ...OPTIONS, checkpointFolder: folder }
    const whole = new CentralNode(OPTIONS)
    await whole.begin(TOY_SLOTS, TOY_VALUES)
    let node = new CentralNode(options)
    await node.begin(TOY_SLOTS, TOY_VALUES)
    for (let step = 0; step < 9; step++) {
      if (step === 3) for (const each of [whole, node]) await each.change({ learningRate: 0.003, maxNorm: 5 })
      if (step % 3 === 2) node = new CentralNode(options, await readCheckpoint(folder))
      for (const each of [whole, node]) await pushTo(each, step)
    }
    assert.equal(node.epoch, 3)
    assert.deepEqual(node.state!.parameters, whole.state!.parameters)
    assert.deepEqual(node.state!.moments, whole.state!.moments)
    const checkpoint = await readCheckpoint(folder)
    const other = { ...ADAMW, learningRate: 0.5 }
    assert.deepEqual(new CentralNode({ ...options, optimizer: other }, checkpoint).optimizer, other)
    assert.throws(() => new CentralNode({ ...options, optimizer: TOY_SGD }, checkpoint), {
      message: 'the checkpoint is of optimizer adamw, the server is started with sgd',
    })
  } finally {
    await rm(folder, { recursive: true })
  }
})

const SLOTS_WITH_BUFFER: readonly ParameterSlot[] = [
  { name: 'weight', shape: [5], layer: 0 },
  { name: 'running_var', shape: [20], layer: 0, kind: 'buffer' },
  { name: 'unused', shape: [3], layer: 1 },
]

for (const isMean of [true, false]) {
  test(`buffers become the mean of all ranks and are not trained, gradients ${isMean ? 'averaged' : 'summed'}`, async (t) => {
    const optimizer = { ...TOY_SGD, learningRate: 1, momentum: 0, maxNorm: 100 }
    const { node, connect, values } = await serve(t, { workers: 2, isMean, optimizer }, SLOTS_WITH_BUFFER)
    const { slots, length } = layOutParameters(SLOTS_WITH_BUFFER)
    const [weight, buffer, unused] = slots.map((slot) => slot.offset) as [number, number, number]
    for (const rank of [0, 1]) {
      const pushed = new Float32Array(length)
      pushed[weight] = 1 + rank
      pushed[buffer] = 5 + rank / 4096 // more digits than a half has
      await (await connect(rank, rank === 1 ? 'f16' : 'f32')).push(pushed, 0, { absent: [2] })
    }
    const { parameters } = node.state!
    assert.equal(parameters[weight], Math.fround(values[weight]! - (isMean ? 1.5 : 3)))
    assert.equal(parameters[buffer], 5 + 1 / 8192)
    assert.equal(parameters[unused], values[unused])
    assert.deepEqual(node.state!.steps, [1, 0, 0])
    assert.deepEqual(node.state!.changedAt, [1, 1, 0])
  })
}

test('decay and rate of a slot are its own', async (t) => {
  const optimizer = { ...TOY_SGD, learningRate: 0.5, momentum: 0, weightDecay: 0.5 }
  const slots = [
    { name: 'a', shape: [1], layer: 0 },
    { name: 'b', shape: [1], layer: 0, weightDecay: 0 },
    { name: 'c', shape: [1], layer: 0, rateScale: 0.5 },
  ]
  const node = new CentralNode({ ...OPTIONS, optimizer })
  await node.begin(slots, new Float32Array(48).fill(1))
  await node.push({ rank: 0, epoch: 0, step: 0, baseVersion: 0 }, new Float32Array(48).fill(1))
  const { parameters } = node.state!
  assert.deepEqual([parameters[0], parameters[16], parameters[32]], [0.25, 0.5, 0.625])
  t.diagnostic('1 − 0.5·1.5, 1 − 0.5·1, 1 − 0.25·1.5')
})

test('parameters that workers hold as halves travel as halves, and the centre keeps float32', async (t) => {
  const slots = TOY_SLOTS.map((slot, at) => ({ ...slot, type: (['bf16', 'f16', 'f32'] as const)[at]! }))
  const { node, connect } = await serve(t, {}, slots)
  const client = await connect(0)
  const values = new Float32Array(client.layout.length)
  for (let step = 0; step < 3; step++) {
    client.mirror.read(0, values.length, values)
    await client.push(makeGradient(values, 0, step), step)
    await client.pull({ atLeast: step + 1 })
  }
  client.mirror.read(0, values.length, values)
  for (const [index, { offset, length, type }] of client.layout.slots.entries()) {
    const master = node.state!.parameters.subarray(offset, offset + length)
    const held = values.subarray(offset, offset + length)
    if (type === 'f32' || type === undefined) assert.deepEqual(held, master)
    else {
      assert.deepEqual(narrowParameters(held, type), narrowParameters(master, type))
      assert.notDeepEqual(held, master, `slot ${index} has masters of more digits`)
    }
  }
})

test('thousands of pushes leave memory as it is', { timeout: 900_000 }, async (t) => {
  const pushes = Number(process.env.DSC_TEST_PUSHES ?? 600)
  const slots = [{ name: 'weight', shape: [65_536], layer: 0 }]
  const { node, connect } = await serve(t, { mode: { kind: 'async' } }, slots)
  const client = await connect(0)
  const gradient = new Float32Array(65_536).fill(0.5)
  const sizes: number[] = []
  for (let step = 0; step < pushes; step++) {
    await client.push(gradient, step)
    await client.pull({ atLeast: step + 1 })
    if ((step + 1) % Math.floor(pushes / 6) === 0) sizes.push(process.memoryUsage().rss / 2 ** 20)
  }
  assert.equal(node.version, pushes)
  t.diagnostic(`MiB after each sixth: ${sizes.map(Math.round).join(', ')}`)
  // A leak of one gradient per push would be 25 MiB per 100 pushes.
  assert.ok(sizes.at(-1)! - sizes[1]! < 64, sizes.join(', '))
})
