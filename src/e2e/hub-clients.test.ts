import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, type TestContext, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { type HubServer, startHubServer } from '../testing/hub-server.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { makeWorld, type World } from '../testing/world.js'

/** Python with the hub's own libraries: `npm run test:hf` names it. */
const PYTHON = process.env.DSC_TEST_HF_PYTHON
const skip = PYTHON === undefined && 'npm run test:hf runs it'
const SCRIPT = join(process.cwd(), 'scripts/hf-clients.py')

const EXPECTED = {
  dataset: { rows: 300, first: 'row 0', last: 'row 299' },
  streaming: { rows: 300 },
  snapshot: {
    files: ['README.md', ...[0, 1, 2].map((shard) => `data/train-0000${shard}-of-00003.parquet`)],
  },
  filesystem: {
    glob: [0, 1, 2].map((shard) => `datasets/org/rows/data/train-0000${shard}-of-00003.parquet`),
  },
  command: { files: [0, 1, 2].map((shard) => `data/train-0000${shard}-of-00003.parquet`) },
  missing: { told: ['EntryNotFoundError', 'RepositoryNotFoundError'] },
}

describe('the libraries of Hugging Face', { skip }, () => {
  let files: Readonly<Record<'tiny' | 'rows', Readonly<Record<string, Buffer>>>>
  let sum: number
  before(async () => {
    const folder = await temporaryDirectory({ after: after as TestContext['after'] })
    await client(['make', folder], {})
    files = { tiny: load(join(folder, 'tiny')), rows: load(join(folder, 'rows')) }
    const hub = await serve()
    const { stdout } = await client(['read', 'model'], {
      HF_ENDPOINT: hub.endpoint,
      HF_HOME: join(folder, 'home'),
    })
    sum = JSON.parse(stdout).sum
    await hub.close()
  })

  async function serve(): Promise<HubServer> {
    const hub = await startHubServer()
    hub.commit('models/org/tiny', files.tiny)
    hub.commit('datasets/org/rows', files.rows)
    return hub
  }

  /** A world with an agent's gateway; what its clients set. */
  async function openGateway(context: TestContext, hub: HubServer) {
    const world = await makeWorld(context, {
      agent: { listen: '127.0.0.1:0' },
      datasets: {
        tiny: { source: 'hf://org/tiny', endpoint: hub.endpoint },
        rows: { source: 'hf://datasets/org/rows', endpoint: hub.endpoint },
      },
    })
    const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'])
    const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
    const { gateway } = JSON.parse(String(line)) as { gateway: string }
    return { world, endpoint: gateway }
  }

  /** What a client that reads `what` says. */
  function expected(what: string): unknown {
    if (what === 'model') return { sum }
    if (what === 'vllm') return { sum, layers: 2 }
    if (what === 'file') return { bytes: files.tiny['model.safetensors']?.length }
    return EXPECTED[what as keyof typeof EXPECTED]
  }

  for (const what of ['model', 'file', 'vllm'] as const)
    test(`dsc run gives ${what} of a prepared model without a request`, async (t) => {
      const hub = await serve()
      t.after(() => hub.close())
      const world = await makeWorld(t, {})
      await succeeds(
        world.start(['prepare', 'hf://org/tiny'], {
          environment: { HF_ENDPOINT: hub.endpoint },
        }).finished,
      )
      await hub.close()
      const got = await runClient(world, ['hf://org/tiny'], what)
      assert.deepEqual(got, expected(what))
    })

  for (const what of [
    'dataset',
    'streaming',
    'snapshot',
    'command',
    'filesystem',
    'model',
    'missing',
  ] as const)
    test(`dsc run gives ${what} of prepared repositories while the hub is away`, async (t) => {
      const hub = await serve()
      const world = await makeWorld(t, {})
      const names = ['hf://datasets/org/rows', 'hf://org/tiny']
      for (const name of names) {
        const { finished } = world.start(['prepare', name], { environment: { HF_ENDPOINT: hub.endpoint } })
        assert.equal((await finished).code, 0)
      }
      await hub.close()
      const got = await runClient(world, names, what)
      assert.deepEqual(got, expected(what))
    })

  for (const what of [
    'dataset',
    'streaming',
    'snapshot',
    'command',
    'filesystem',
    'model',
    'vllm',
    'file',
    'missing',
  ] as const)
    test(`a gateway answers for ${what} as a hub does, and reads the hub once`, async (t) => {
      const hub = await serve()
      t.after(() => hub.close())
      const { world, endpoint } = await openGateway(t, hub)
      const clients = ['one', 'two', 'three'].map(async (name) => {
        const environment = { HF_ENDPOINT: endpoint, HF_HOME: join(world.directory, name) }
        const { stdout } = await client(['read', what], environment)
        return JSON.parse(stdout)
      })
      for (const got of await Promise.all(clients)) assert.deepEqual(got, expected(what))
      const stored = Object.values({ ...files.tiny, ...files.rows }).reduce(
        (all, body) => all + body.length,
        0,
      )
      assert.ok(hub.sentBytes <= stored, `${hub.sentBytes} bytes of ${stored} were read from the hub`)
    })

  async function runClient(world: World, names: readonly string[], what: string) {
    const { finished } = world.start(['run', ...names, '--', PYTHON!, SCRIPT, 'read', what], {
      environment: { HF_HOME: join(world.directory, 'home'), HF_ENDPOINT: 'http://127.0.0.1:1' },
    })
    const { stdout } = await succeeds(finished)
    return JSON.parse(stdout)
  }
})

async function client(words: readonly string[], environment: Readonly<Record<string, string>>) {
  const child = spawn(PYTHON!, [SCRIPT, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  })
  const read = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      read[name] += text
    })
  const [code] = await once(child, 'close')
  assert.equal(code, 0, read.stderr)
  return read
}

function load(folder: string): Readonly<Record<string, Buffer>> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [name, readFileSync(join(folder, name))]),
  )
}
