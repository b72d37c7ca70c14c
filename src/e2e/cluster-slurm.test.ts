import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCluster } from '../testing/cluster.js'
import { makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { DSC_IN_SHELL } from '../testing/dsc-processes.js'
import { startSlurm, whyNoSlurm } from '../testing/slurm-cluster.js'
import { waitFor } from '../testing/world.js'

test('Slurm jobs find their datasets prepared, start without them when the store is dead, and leave no lease', {
  skip: whyNoSlurm,
}, async (context) => {
  const objects = makeObjects(5, 0)
  const store = await makeStore(context, objects)
  const environment: Record<string, string> = { ...STORE_ENVIRONMENT }
  const cluster = await makeCluster(context, {
    nodes: ['node-a'],
    datasets: {
      ...store.datasets,
      dead: { ...(store.datasets.flowers as object), endpoint: 'http://127.0.0.1:9' },
    },
    environment,
  })
  const [node] = cluster.nodes
  const directory = join(cluster.directory, 'slurm')
  await mkdir(directory)
  const exports = Object.entries(STORE_ENVIRONMENT).map(([name, value]) => `export ${name}=${value}`)
  const dsc = DSC_IN_SHELL
  const settings = `export DSC_CONFIG=${node!.configPath}\n${exports.join('\n')}\nDSC_DEADLINE=15\n`
  const slurm = await startSlurm(context, directory, settings)
  const leases = async (): Promise<readonly { task: string; purpose: string; dataset: string }[]> =>
    JSON.parse((await node!.dsc('status', '--json')).stdout).leases
  const held = async (jobId: string) => (await leases()).filter(({ task }) => task === `slurm:${jobId}`)
  const inJob = `export DSC_CONFIG=${node!.configPath}`

  // 1. A job finds its dataset prepared by the prolog, and its lease is gone afterwards.
  const first = await slurm.submit(
    `${inJob}\nP=$(${dsc} prepare flowers) && ls $P | wc -l\n${dsc} leases --json\nsleep 1`,
    '--comment=dsc:flowers',
  )
  await waitFor('the first job', async () => (await slurm.state(first)) === 'COMPLETED', 60_000)
  const output = await slurm.output(first)
  assert.match(output, /^5$/m)
  assert.match(output, new RegExp(`slurm:${first}`))
  assert.equal(store.sentBytes(), store.totalBytes, 'the prolog fetched it once, the job nothing')
  await waitFor('the lease of the first job to end', async () => (await held(first)).length === 0)

  // 2. The store is dead: the prolog gives up at its deadline, the job starts, the node stays up.
  const second = await slurm.submit('echo started', '--comment=dsc:dead')
  await waitFor('the second job', async () => (await slurm.state(second)) === 'COMPLETED', 60_000)
  assert.match(await slurm.output(second), /started/)
  await waitFor(
    'the node to be free again',
    async () => (await slurm.run('sinfo', '--noheader', '--format=%t')) === 'idle',
  )
  await waitFor('the lease of the second job to end', async () => (await held(second)).length === 0)

  // 3. A job that is cancelled leaves no lease either.
  const third = await slurm.submit('sleep 600', '--comment=dsc:flowers')
  await waitFor('the third job', async () => (await slurm.state(third)) === 'RUNNING', 60_000)
  await waitFor('the lease of the third job', async () => (await held(third)).length === 1)
  await slurm.run('scancel', third)
  await waitFor('the lease of the third job to end', async () => (await held(third)).length === 0, 60_000)

  // 4. The node loses power: no epilog runs, and the lease ends when Slurm no longer lists the job.
  const fourth = await slurm.submit('sleep 600', '--comment=dsc:flowers', '--no-requeue')
  await waitFor('the fourth job', async () => (await slurm.state(fourth)) === 'RUNNING', 60_000)
  await waitFor('the lease of the fourth job', async () => (await held(fourth)).length === 1)
  await slurm.killNode()
  Object.assign(environment, slurm.environment) // for the squeue of dsc cleanup
  assert.equal((await held(fourth)).length, 1, 'nothing is concluded while Slurm lists the job')
  await waitFor(
    'cleanup to end the lease of the lost job',
    async () => {
      assert.equal((await node!.dsc('cleanup')).code, 0)
      return (await held(fourth)).length === 0
    },
    90_000,
  )
})
