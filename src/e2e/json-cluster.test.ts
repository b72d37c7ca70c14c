import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import { CLUSTER_ANSWERS } from '../cli/answers/cluster-answers.js'
import { OutputChecker } from '../testing/check-outputs.js'
import { makeWorld, writeTree } from '../testing/world.js'

/** Two nodes on this machine with one record, a dataset of two files, and a token. */
async function makeTwoNodes(context: TestContext) {
  const world = await makeWorld(context, {})
  const { directory, recordPath } = world
  await writeTree(directory, {
    'flowers/1.txt': 'a rose',
    'flowers/2.txt': 'a tulip',
    token: 'a token of our agents',
  })
  const agent = { listen: '127.0.0.1:0', tokenFile: join(directory, 'token') }
  const datasets = {
    flowers: { source: `file://${directory}/flowers/` },
    gone: { source: `file://${directory}/gone/` },
  }
  await world.configure({ agent, datasets })
  const other = join(directory, 'b.yaml')
  const root = join(directory, 'cache-b')
  const settings = { record: `sqlite://${recordPath}`, node: 'node-b', cache: { root }, agent, datasets }
  await writeFile(other, stringify(settings))
  const onOther = {
    dsc: (...words: readonly string[]) => world.dsc(...words, '--config', other),
    start: (words: readonly string[]) => world.start([...words, '--config', other]),
  }
  return { world, onOther }
}

test('what commands about agents and several nodes print with --json is what the schema says', async (context) => {
  const { world, onOther } = await makeTwoNodes(context)
  const outputs = new OutputChecker(CLUSTER_ANSWERS)
  await outputs.run(world, 'agent link', ['agent', 'link'])
  await outputs.run(world, 'gateway key', ['gateway', 'key', 'alice'])
  await outputs.run(world, 'prepare --prolog', ['prepare', 'gone', '--prolog', '--task', 't'])
  const both = ['--task', 't', '--nodes', 'node-a,node-b']
  const stripe = ['prepare', 'flowers', '--task', 't', '--stripe', 'node-a,node-b']
  await outputs.serve(world, 'agent', ['agent'], () =>
    outputs.serve(onOther, 'agent', ['agent', '--gateway', '127.0.0.1:0'], async () => {
      await outputs.run(world, 'prepare --nodes', ['prepare', 'gone', ...both], 11)
      await outputs.run(world, 'prepare --stripe', stripe)
      await outputs.run(world, 'repair', ['repair', 'flowers'])
      await world.dsc('release', '--all', '--any-node', '--task', 't')
      await onOther.dsc('evict', 'flowers', '--yes')
      await outputs.run(world, 'repair', ['repair', 'flowers', '--dry-run'])
      await outputs.run(world, 'repair', ['repair', 'flowers'])
      await outputs.run(world, 'prepare --nodes', ['prepare', 'flowers', '--task', 't', '--nodes', 'node-b'])
      await outputs.run(world, 'prepare --remote', ['prepare', 'flowers', '--task', 't', '--remote'])
    }),
  )
  await outputs.run(world, 'record claim-node', ['record', 'claim-node', '--yes'])
  const forget = ['record', 'forget-node', 'node-b']
  await outputs.run(world, 'record forget-node --dry-run', [...forget, '--dry-run'])
  await outputs.run(world, 'record forget-node', [...forget, '--yes'])
  const copy = `sqlite://${world.directory}/copy.db`
  await outputs.run(world, 'record migrate', ['record', 'migrate', `sqlite://${world.recordPath}`, copy])
  outputs.end()
})
