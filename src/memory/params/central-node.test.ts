import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeGradient, TOY_SGD, TOY_SLOTS, TOY_VALUES, trainAlone } from '../../testing/toy-model.js'
import { CentralNode } from './central-node.js'
import type { CentralOptions } from './central-options.js'
import { readCheckpoint } from './checkpoint.js'
import { openParameterClient } from './parameter-client.js'
import { layOutParameters } from './plan/parameter-layout.js'
import { serveParameters } from './serve-parameters.js'

const OPTIONS: CentralOptions = {
  mode: { kind: 'sync' },
  workers: 4,
  optimizer: TOY_SGD,
  isMean: true,
  lost: { kind: 'abort' },
  lostAfterMs: 60_000,
  checkpointEvery: 1,
}

async function serve(t: TestContext, options: Partial<CentralOptions>) {
  const node = new CentralNode({ ...OPTIONS, ...options })
  const server = await serveParameters(node, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const connect = async (rank: number, pushType?: 'f16') => {
    const client = await openParameterClient({
      url: server.url,
      rank,
      pushType,
      slots: TOY_SLOTS,
      values: TOY_VALUES,
      patienceMs: 3000,
    })
    t.after(() => client.close())
    await client.pull()
    return client
  }
  return { node, connect }
}

test('four sync workers get what one process gets on the summed batch, bit for bit', async (t) => {
  const { connect } = await serve(t, {})
  const finals = await Promise.all(
    [0, 1, 2, 3].map(async (rank) => {
      const client = await connect(rank)
      const values = new Float32Array(client.layout.length)
      for (let step = 0; step < 20; step++) {
        client.mirror.read(0, values.length, values)
        await client.push(makeGradient(values, rank, step), step)
        assert.equal(await client.pull({ atLeast: step + 1 }), step + 1)
      }
      client.mirror.read(0, values.length, values)
      return values
    }),
  )
  for (const values of finals) assert.deepEqual(values, trainAlone(4, 20, true))
})

test('pushes as halves come to what float32 comes to, within the rounding of one step each', async (t) => {
  const { connect } = await serve(t, {})
  const finals = await Promise.all(
    [0, 1, 2, 3].map(async (rank) => {
      const client = await connect(rank, 'f16')
      const values = new Float32Array(client.layout.length)
      for (let step = 0; step < 20; step++) {
        client.mirror.read(0, values.length, values)
        await client.push(makeGradient(values, rank, step), step)
        await client.pull({ atLeast: step + 1 })
      }
      client.mirror.read(0, values.length, values)
      return values
    }),
  )
  const expected = trainAlone(4, 20, true)
  for (const values of finals) assert.deepEqual(values, finals[0])
  // Gradients here are below 4: 20 steps with an error of at most 2^-11 · 4, times learning rate / (1 − momentum).
  const errors = expected.map((value, at) => Math.abs(value - finals[0]![at]!))
  const { slots } = layOutParameters(TOY_SLOTS) // between slots is padding, which halves leave 0
  const worst = Math.max(...slots.flatMap(({ offset, length }) => [...errors.slice(offset, offset + length)]))
  assert.ok(worst > 0 && worst <= 20 * 2 ** -11 * 4 * 0.5, `${worst}`)
})

test('a NaN in a push of halves is refused by name too, and halves of another model by their size', async (t) => {
  const { node, connect } = await serve(t, { workers: 1 })
  const client = await connect(0, 'f16')
  const gradient = makeGradient(TOY_VALUES, 0, 0)
  gradient[1201] = Number.NaN
  await assert.rejects(client.push(gradient, 0), /the gradient of first.weight|first.bias is not finite/)
  const other = await node.push({ rank: 0, epoch: 0, step: 0, baseVersion: 0 }, new Float32Array(3))
  assert.equal(other.kind === 'refuse' && other.reason, 'size')
  assert.equal(node.version, 0)
})

test('a gradient with a NaN is refused by name and changes nothing; the rank may push again', async (t) => {
  const { node, connect } = await serve(t, { workers: 1 })
  const client = await connect(0)
  const bad = Float32Array.from(TOY_VALUES)
  const { offset } = client.layout.slots[2]!
  bad[offset + 5] = Number.NaN
  await assert.rejects(client.push(bad, 0), {
    code: 'PARAMS_REFUSED',
    message: 'rank 0, step 0: the gradient of second.weight is not finite',
  })
  assert.equal(node.version, 0)
  bad[offset + 5] = Number.POSITIVE_INFINITY
  await assert.rejects(client.push(bad, 0), /not finite/)
  assert.equal((await client.push(TOY_VALUES, 0)).state, 'applied')
})

test('a push that arrives twice is applied once, in every mode', async (t) => {
  for (const mode of [{ kind: 'sync' }, { kind: 'ssp', bound: 2 }, { kind: 'async' }] as const) {
    const { node, connect } = await serve(t, { workers: 1, mode })
    const client = await connect(0)
    await client.push(TOY_VALUES, 0)
    assert.equal((await client.push(TOY_VALUES, 0)).state, 'duplicate')
    assert.equal(node.version, 1)
  }
})

test('ssp:1 lets a fast rank run one step ahead and then makes it wait for the slowest', async (t) => {
  const { connect } = await serve(t, { workers: 2, mode: { kind: 'ssp', bound: 1 } })
  const [fast, slow] = [await connect(0), await connect(1)]
  const gradient = new Float32Array(TOY_VALUES.length).fill(1)
  for (const step of [0, 1]) {
    await fast.pull({ step })
    if (step === 0) assert.equal((await fast.push(gradient, step)).state, 'applied')
  }
  const stop = AbortSignal.timeout(300)
  await assert.rejects(fast.pull({ step: 2, signal: stop }), { name: 'AbortError' }, 'step 2 must wait')
  await slow.push(gradient, 0)
  await fast.pull({ step: 1 })
  assert.equal((await fast.push(gradient, 1)).state, 'applied')
})

test('ssp:1 refuses a push that is too far ahead, and takes the very same one when the slowest has moved on', async (t) => {
  const { connect } = await serve(t, { workers: 2, mode: { kind: 'ssp', bound: 1 } })
  const [fast, slow] = [await connect(0), await connect(1)]
  const gradient = new Float32Array(TOY_VALUES.length).fill(1)
  await fast.pull()
  for (const step of [0, 1]) assert.equal((await fast.push(gradient, step)).state, 'applied')
  await fast.pull()
  assert.equal((await fast.push(gradient, 2)).state, 'refused')
  await slow.pull()
  await slow.push(gradient, 0)
  assert.equal((await fast.push(gradient, 2)).state, 'applied')
  assert.equal((await fast.push(gradient, 2)).state, 'duplicate')
})

test('in ssp mode a dead rank is named after a while, or the others go on with a quorum until it is back', async (t) => {
  const mode = { kind: 'ssp', bound: 1 } as const
  const stopped = await serve(t, { workers: 2, mode, lostAfterMs: 50 })
  const lonely = await stopped.connect(0)
  for (const step of [0, 1]) await lonely.push(TOY_VALUES, step)
  await assert.rejects(lonely.pull({ step: 2 }), /step 2 waits for rank 1, and no rank has pushed for 50 ms/)
  const lost = { kind: 'quorum', quorum: 1 } as const
  const going = await serve(t, { workers: 2, mode, lostAfterMs: 50, lost })
  const [alive, back] = [await going.connect(0), await going.connect(1)]
  for (const step of [0, 1, 2, 3]) {
    await alive.pull({ step })
    assert.equal((await alive.push(TOY_VALUES, step)).state, 'applied')
  }
  for (const step of [0, 1, 2, 3]) {
    await back.pull({ step })
    assert.equal((await back.push(TOY_VALUES, step)).state, 'applied')
  }
  assert.deepEqual(going.node.missingRanks(), [])
  await alive.pull({ step: 4 })
  assert.equal((await alive.push(TOY_VALUES, 4)).state, 'applied')
  await alive.pull()
  assert.equal((await alive.push(TOY_VALUES, 5)).state, 'applied')
  assert.equal((await alive.push(TOY_VALUES, 6)).state, 'refused', 'rank 1 counts again')
})

test('a finite gradient that would make a parameter infinite is refused by name and changes nothing', async (t) => {
  const { node, connect } = await serve(t, { workers: 1, mode: { kind: 'async' } })
  const client = await connect(0)
  const gradient = new Float32Array(client.layout.length)
  gradient[client.layout.slots[1]!.offset + 3] = 3e38
  assert.equal((await client.push(gradient, 0)).state, 'applied') // 0.05 times this much: large, finite
  const before = node.state!.parameters.slice()
  await client.pull()
  await assert.rejects(client.push(gradient, 1), {
    code: 'PARAMS_REFUSED',
    message: /rank 0, step 1: its gradient would make first\.bias infinite: 3\.0e\+38 on top of -1\.5e\+37/,
  })
  assert.deepEqual([node.version, node.state!.parameters], [1, before])
  assert.equal((await client.push(new Float32Array(client.layout.length), 1)).state, 'applied')
})

test('in sync mode gradients that are only together too large end the job by name', async (t) => {
  const { node, connect } = await serve(t, { workers: 2, isMean: false })
  const clients = [await connect(0), await connect(1)]
  const gradient = new Float32Array(clients[0]!.layout.length)
  gradient[0] = 2e38
  for (const client of clients) await client.push(gradient, 0).catch(() => {})
  await assert.rejects(
    clients[0]!.pull({ atLeast: 1 }),
    /of all ranks together would make first\.weight infinite/,
  )
  assert.ok(node.state!.parameters.every(Number.isFinite))
})

test('a step far ahead is refused, so that it does not make all later ones duplicates', async (t) => {
  const { node, connect } = await serve(t, { workers: 1, mode: { kind: 'async' } })
  const client = await connect(0)
  await assert.rejects(client.push(TOY_VALUES, 1e9), /pushes step 1000000000, its next one is 0/)
  assert.equal((await client.push(TOY_VALUES, 0)).state, 'applied')
  assert.deepEqual(node.lastSteps, [0])
})

test('a worker of another job is refused by name, that of the same user is not', async (t) => {
  const node = new CentralNode({ ...OPTIONS, workers: 1 })
  const server = await serveParameters(node, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const open = (job?: string) =>
    openParameterClient({ url: server.url, rank: 0, slots: TOY_SLOTS, values: TOY_VALUES, job })
  const own = `user-${process.getuid!()}`
  await assert.rejects(open('user-4711'), {
    code: 'PARAMS_REFUSED',
    message: `the server is of job ${own}, this worker of user-4711: name another server or the job`,
  })
  for (const job of [undefined, own]) (await open(job)).close()
})

test('a sync step without one rank stops the job by its name, or goes on with a quorum', async (t) => {
  const stopped = await serve(t, { workers: 2, lostAfterMs: 50 })
  const lonely = await stopped.connect(0)
  await lonely.push(TOY_VALUES, 0)
  await assert.rejects(lonely.pull({ atLeast: 1 }), /no gradient from rank 1 within 50 ms/)
  const going = await serve(t, { workers: 2, lostAfterMs: 50, lost: { kind: 'quorum', quorum: 1 } })
  const client = await going.connect(0)
  await client.push(TOY_VALUES, 0)
  assert.equal(await client.pull({ atLeast: 1 }), 1)
})

test('a pull brings only what changed since the half it writes, and both halves stay whole', async (t) => {
  const { connect } = await serve(t, { workers: 1 })
  const client = await connect(0)
  const gradient = new Float32Array(client.layout.length)
  gradient.fill(1, 0, 1200) // only first.weight learns
  const values = new Float32Array(client.layout.length)
  for (let step = 0; step < 4; step++) {
    await client.push(gradient, step)
    await client.pull({ atLeast: step + 1 })
    client.mirror.read(0, values.length, values)
    const { offset, length } = client.layout.slots[2]!
    assert.deepEqual(values.slice(offset, offset + length), TOY_VALUES.slice(offset, offset + length))
    assert.notEqual(values[0], TOY_VALUES[0])
  }
})

test('a restarted node goes on from its checkpoint in a new epoch', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-params-'))
  try {
    const options = { ...OPTIONS, workers: 1, checkpointFolder: folder }
    const first = new CentralNode(options)
    await first.begin(TOY_SLOTS, TOY_VALUES)
    await first.push({ rank: 0, epoch: 0, step: 0, baseVersion: 0 }, TOY_VALUES)
    const second = new CentralNode(options, await readCheckpoint(folder))
    assert.deepEqual([second.epoch, second.version, second.lastSteps], [1, 1, [0]])
    assert.deepEqual(second.state!.parameters, first.state!.parameters)
    assert.deepEqual(second.state!.moments, first.state!.moments)
    const late = await second.push({ rank: 0, epoch: 0, step: 1, baseVersion: 1 }, TOY_VALUES)
    assert.equal(late.kind === 'refuse' && late.reason, 'epoch')
    const path = join(folder, 'params.checkpoint')
    const bytes = await readFile(path)
    bytes[bytes.length - 1]! ^= 1
    await writeFile(path, bytes)
    await assert.rejects(readCheckpoint(folder), /unusable: .*checksum/)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('beyond loopback the server needs a token, and checks it', async (t) => {
  const node = new CentralNode({ ...OPTIONS, workers: 1 })
  await assert.rejects(serveParameters(node, { host: '0.0.0.0', port: 0 }), { code: 'USAGE' })
  const server = await serveParameters(node, { host: '127.0.0.1', port: 0, token: 'secret' })
  t.after(() => server.close())
  const open = (token: string) =>
    openParameterClient({ url: server.url, rank: 0, slots: TOY_SLOTS, values: TOY_VALUES, token })
  await assert.rejects(open('wrong'), /a valid token is needed/)
  const client = await open('secret')
  client.close()
})
