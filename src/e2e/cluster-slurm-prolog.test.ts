import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCluster } from '../testing/cluster.js'
import { makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { SLURM_NODE, startSlurm, whyNoSlurm } from '../testing/slurm-cluster.js'
import { waitFor } from '../testing/world.js'

test('Slurm jobs prefer nodes by name, say in a sentence what they use, are told of mistakes, and end a staging with scancel', {
  skip: whyNoSlurm,
}, async (context) => {
  const store = await makeStore(context, makeObjects(3, 1))
  const slow = await makeStore(context, makeObjects(3, 1)) // of its own: what one source has is not fetched twice
  const environment: Record<string, string> = { ...STORE_ENVIRONMENT }
  const { nodes, directory } = await makeCluster(context, {
    nodes: [SLURM_NODE],
    datasets: { ...store.datasets, roses: slow.datasets.flowers },
    environment,
  })
  const [node] = nodes
  const folder = join(directory, 'slurm')
  await mkdir(folder)
  const exports = Object.entries(STORE_ENVIRONMENT).map(([name, value]) => `export ${name}=${value}`)
  const settings = `export DSC_CONFIG=${node!.configPath}\n${exports.join('\n')}\nDSC_DEADLINE=300\nDSC_FEATURES=yes\n`
  const slurm = await startSlurm(context, folder, settings)
  Object.assign(environment, slurm.environment) // for the sinfo of dsc hint
  const ended = (job: string, state: string) =>
    waitFor(`job ${job}: ${state}`, async () => (await slurm.state(job)) === state, 60_000)
  const show = (job: string) => slurm.run('scontrol', 'show', 'job', '--oneliner', job)
  const hint = async () => node!.dsc('hint', 'flowers', '--prefer')

  const first = await slurm.submit('true', '--comment=my run dsc:flowers, and nothing else.')
  await ended(first, 'COMPLETED')
  assert.equal(store.sentBytes(), store.totalBytes, 'the comment was understood')
  assert.doesNotMatch(await show(first), /AdminComment/)

  // The prolog has made the node's name a feature; without it, Slurm refuses the job.
  const hinted = await hint()
  assert.deepEqual([hinted.code, hinted.stdout], [0, `--prefer=${SLURM_NODE}\n`], hinted.stderr)
  await ended(await slurm.submit('true', hinted.stdout.trim()), 'COMPLETED')
  await slurm.run('scontrol', 'update', `NodeName=${SLURM_NODE}`, 'AvailableFeatures=', 'ActiveFeatures=')
  await assert.rejects(slurm.submit('true', hinted.stdout.trim()), /Batch job submission failed/)
  const without = await hint()
  assert.deepEqual([without.code, without.stdout], [0, ''])
  assert.match(without.stderr, new RegExp(`Slurm knows no feature of their name: ${SLURM_NODE}`))

  const mistaken = await slurm.submit('echo started', '--comment=dsc:flowerz')
  await ended(mistaken, 'COMPLETED')
  assert.match(await slurm.output(mistaken), /started/)
  assert.match(
    await show(mistaken),
    /AdminComment=dsc: flowerz is not staged, .* no dataset is called flowerz/,
  )

  const goOn = slow.holdBack('data/l0.bin')
  const cancelled = await slurm.submit('true', '--comment=dsc:roses')
  const staging = async () =>
    JSON.parse((await node!.dsc('status', '--json')).stdout).transfers as { stager: string | null }[]
  await waitFor('the prolog to stage', async () => (await staging())[0]?.stager, 60_000)
  await slurm.run('scancel', cancelled)
  await waitFor('the end of the staging', async () => (await staging())[0]?.stager === null)
  await waitFor(
    'the node to be free',
    async () => (await slurm.run('sinfo', '--noheader', '--format=%t')) === 'idle',
  )
  goOn()
})
