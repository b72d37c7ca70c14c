import assert from 'node:assert/strict'
import { mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TOY_SGD, TOY_SLOTS, TOY_VALUES } from '../../testing/toy-model.js'
import { CentralNode } from './central-node.js'
import type { CentralOptions } from './central-options.js'
import { readCheckpoint } from './checkpoint.js'
import { openParameterClient } from './parameter-client.js'
import { serveParameters } from './serve-parameters.js'

/** Starts a central node with a checkpoint folder whose disk can be full. */
async function serve(t: TestContext, options: Partial<CentralOptions>) {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-params-'))
  const node = new CentralNode({
    mode: { kind: 'async' },
    workers: 1,
    optimizer: TOY_SGD,
    isMean: true,
    lost: { kind: 'abort' },
    lostAfterMs: 60_000,
    checkpointEvery: 1,
    checkpointFolder: folder,
    ...options,
  })
  const server = await serveParameters(node, { host: '127.0.0.1', port: 0 })
  t.after(async () => {
    await server.close()
    await rm(folder, { recursive: true })
  })
  const connect = async () => {
    const { url } = server
    const client = await openParameterClient({ url, rank: 0, slots: TOY_SLOTS, values: TOY_VALUES })
    t.after(() => client.close())
    await client.pull()
    return client
  }
  const part = join(folder, 'params.checkpoint.part')
  return { node, connect, folder, fill: () => symlink('/dev/full', part), makeRoom: () => rm(part) }
}

const FULL = /no checkpoint can be written to .*dsc-params-.* \(ENOSPC\)/

test('a version that cannot be saved ends the job by name, and is seen by nobody', async (t) => {
  const { connect, folder, fill } = await serve(t, {})
  const client = await connect()
  assert.equal((await client.push(TOY_VALUES, 0)).state, 'applied')
  await fill()
  await assert.rejects(client.push(TOY_VALUES, 1), { code: 'PARAMS_REFUSED', message: FULL })
  await assert.rejects(client.pull({ atLeast: 2 }), FULL)
  await assert.rejects(client.push(TOY_VALUES, 1), FULL)
  assert.equal((await readCheckpoint(folder))?.version, 1)
})

test('a step of a quorum that cannot be saved ends the job, not the server', async (t) => {
  const quorum = { lostAfterMs: 50, lost: { kind: 'quorum', quorum: 1 } } as const
  const { connect, fill } = await serve(t, { mode: { kind: 'sync' }, workers: 2, ...quorum })
  const client = await connect()
  await fill()
  assert.equal((await client.push(TOY_VALUES, 0)).state, 'waiting')
  await assert.rejects(client.pull({ atLeast: 1 }), FULL)
})

test('a first worker, and a change, that cannot be saved are refused, and taken when there is room again', async (t) => {
  const { node, connect, fill, makeRoom } = await serve(t, {})
  await fill()
  await assert.rejects(connect(), FULL)
  await makeRoom()
  const client = await connect()
  await fill()
  await assert.rejects(client.change({ learningRate: 0.5 }), FULL)
  assert.equal(node.optimizer.learningRate, TOY_SGD.learningRate)
  await makeRoom()
  await client.change({ learningRate: 0.5 })
  assert.equal(node.optimizer.learningRate, 0.5)
  assert.equal((await client.push(TOY_VALUES, 0)).state, 'applied')
})

test('a file above 2 GiB is read', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'dsc-params-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'params.checkpoint')
  await writeFile(path, '')
  await truncate(path, 2 ** 31 + 4)
  await assert.rejects(readCheckpoint(folder), /unusable: .*does not speak DSCP/)
})
