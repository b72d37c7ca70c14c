import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FEED_ANSWERS } from '../cli/answers/feed-answers.js'
import { EXCHANGE_ANSWERS } from '../exchange/exchange-answer.js'
import { MEMORY_ANSWERS } from '../memory/memory-answer.js'
import { OutputChecker } from '../testing/check-outputs.js'
import { makeWorld, writeTree } from '../testing/world.js'

const FIXTURES = fileURLToPath(new URL('../../fixtures', import.meta.url))

test('what dsc feed prints with --json is what the schema says', async (context) => {
  const world = await makeWorld(context, {})
  const texts = Array.from({ length: 8 }, (_, index) => [`flowers/${index}.txt`, `flower ${index}`] as const)
  await writeTree(world.directory, Object.fromEntries(texts))
  await world.configure({ datasets: { flowers: { source: `file://${world.directory}/flowers/` } } })
  const outputs = new OutputChecker(FEED_ANSWERS)
  const cost = ['--fixed-ms', '1', '--bandwidth', '320MB/s']
  await outputs.run(world, 'feed plan --cold', ['feed', 'plan', 'flowers', '--cold', ...cost])
  const cold = ['feed', 'plan', 'flowers', '--cold', '--batch', '2', '--step-ms', '4', ...cost]
  await outputs.run(world, 'feed plan --cold', cold)
  await world.dsc('prepare', 'flowers', '--task', 't')
  const plan = ['feed', 'plan', 'flowers', '--batch', '2']
  await outputs.run(world, 'feed plan', plan)
  await outputs.run(world, 'feed plan', [...plan, '--step-ms', '4', ...cost])
  await outputs.run(world, 'feed index', ['feed', 'index', 'flowers'])
  await outputs.run(world, 'feed bench', ['feed', 'bench', 'flowers', '--batch', '2', '--epochs', '2'])
  const socket = join(world.directory, 'feed.sock')
  await outputs.serve(world, 'feed serve', ['feed', 'serve', 'flowers', '--socket', socket], async () => {
    await outputs.run(world, 'feed status', ['feed', 'status', '--socket', socket])
  })
  await outputs.serve(world, 'feed storage', ['feed', 'storage', 'flowers'])
  await outputs.serve(world, 'feed storage', ['feed', 'storage', 'flowers', '--stripe', '0/2'])
  outputs.end()
})

test('what dsc exchange prints with --json is what the schema says', async (context) => {
  const world = await makeWorld(context, {})
  const outputs = new OutputChecker(EXCHANGE_ANSWERS)
  const model = ['--model', join(FIXTURES, 'exchange/vgg-16.json'), '--backward-ms', '200']
  const plan = ['exchange', 'plan', ...model, '--alpha-us', '500', '--gigabits', '10']
  await outputs.run(world, 'exchange plan', [...plan, '--ranks', '8'])
  await outputs.run(world, 'exchange plan', [...plan, '--ranks', '8', '--optimum'])
  await outputs.run(world, 'exchange plan', [...plan, '--ranks', '1'])
  await outputs.serve(world, 'exchange serve', ['exchange', 'serve', '--listen', '127.0.0.1:0'])
  await outputs.run(world, 'exchange probe', ['exchange', 'probe'])
  await outputs.run(world, 'exchange bench', ['exchange', 'bench', '--mib', '1', '--repeats', '2'])
  outputs.end()
})

test('what dsc memory and dsc params print with --json is what the schema says', async (context) => {
  const world = await makeWorld(context, {})
  const outputs = new OutputChecker(MEMORY_ANSWERS)
  const profile = join(FIXTURES, 'memory/convnet.profile.json')
  const script = `cp '${profile}' "$DSC_MEMORY_PROFILE"`
  const commandWords = ['memory', 'profile', '--json', '--', 'sh', '-c', script]
  outputs.check('memory profile', (await world.dsc(...commandWords)).stdout)
  const budget = ['--budget', '60%', '--smallest', '16KiB']
  await outputs.run(world, 'memory ways', ['memory', 'ways', profile, ...budget])
  await outputs.run(world, 'memory ways', ['memory', 'ways', profile, '--budget', '1%'], 6)
  for (const reload of ['arena', 'slots']) {
    const words = ['memory', 'plan', profile, ...budget, '--reload', reload, '--out', 'plan.json']
    await outputs.run(world, 'memory plan', words)
  }
  await outputs.run(world, 'memory explain', ['memory', 'explain', 'plan.json', '--profile', profile])
  const recipes = ['memory', 'explain', '--recipes', '--profile', profile]
  await outputs.run(world, 'memory explain --recipes', [...recipes, '--budget', '60%'])
  await outputs.run(world, 'memory simulate', ['memory', 'simulate', 'plan.json', '--profile', profile])
  await writeRun(world.directory)
  await outputs.run(world, 'memory verify', ['memory', 'verify', 'run.json', '--plan', 'plan.json'])
  const listen = ['--listen', '127.0.0.1:0']
  const params = ['params', 'serve', '--mode', 'sync', '--workers', '2', ...listen]
  await outputs.serve(world, 'params serve', params, async ({ url }) => {
    await outputs.run(world, 'params status', ['params', 'status', '--server', String(url)])
    await outputs.run(world, 'params set', ['params', 'set', '--lr', '0.5', '--server', String(url)])
  })
  outputs.end()
})

/** The report of a run that did what plan.json says. */
async function writeRun(folder: string): Promise<void> {
  const { profile, predicted } = JSON.parse(await readFile(join(folder, 'plan.json'), 'utf8'))
  const counts = { steps: 10, plannedSteps: 10, planMisses: 0, stepMs: null, stallMs: 0, hostBytes: 0 }
  const moved = { peakBytes: predicted.peakBytes, movedBytes: 10 * predicted.movedBytes, leftReferences: 0 }
  const run = { v: 1, kind: 'dsc.mem.run', plan: profile, device: 'cpu', lateness: [], ...counts, ...moved }
  await writeFile(join(folder, 'run.json'), JSON.stringify(run))
}
