import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWaitingCluster, rawNode, rawPod } from '../../testing/waiting-cluster.js'
import { parsePod } from './cluster-objects.js'

test('a round asks the record once for a dataset, however many pods wait for it', async (context) => {
  const cluster = await makeWaitingCluster(context, ['gpu-01'])
  const { record } = cluster
  const asked: string[] = []
  for (const name of ['listNodes', 'listCopies', 'leaseReady', 'findDataset', 'listLeases'] as const) {
    const method = record[name].bind(record) as (...values: unknown[]) => Promise<unknown>
    context.mock.method(record, name, (...values: unknown[]) => {
      asked.push(name)
      return method(...values)
    })
  }
  const pods = ['a', 'b', 'c', 'd'].map((name) => parsePod(rawPod(name, ['flowers']))!)
  for (let round = 0; round < 2; round++) {
    asked.length = 0
    await cluster.look()
    await Promise.all(pods.map((each) => cluster.gates.reconcile(each)))
    assert.deepEqual(asked, ['listNodes', 'listCopies'])
  }
})

test('data is awaited on a node until the last job that wants it there is forgotten', async (context) => {
  const nodes = ['gpu-01', 'gpu-02']
  const cluster = await makeWaitingCluster(context, nodes)
  await cluster.look(
    [],
    nodes.map((name) => rawNode(name)),
  )
  const { spec, requests } = parsePod(rawPod('any', []))!
  const choose = (task: string, dataset: string, excluded: readonly string[] = []) =>
    cluster.view.choose(
      task,
      { ...{ spec: spec!, requests, count: 1, isPrefetch: false }, datasets: [dataset] },
      new Set(excluded),
    )
  for (const task of ['first', 'second']) await choose(task, 'birds', ['gpu-01'])
  cluster.view.forget('first')
  assert.deepEqual(await choose('joins', 'birds'), ['gpu-02'])
  cluster.view.forget('joins')
  assert.deepEqual(await choose('avoids', 'flowers'), ['gpu-01'])
  for (const task of ['second', 'avoids']) cluster.view.forget(task)
  assert.deepEqual(await choose('birds', 'birds'), ['gpu-01'], 'by its name: none awaits anything')
})
