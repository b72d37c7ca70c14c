import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { makeWorld, s3Dataset, waitFor } from '../testing/world.js'

const environment = { AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' }

async function arrange(
  context: TestContext,
  stage: Readonly<Record<string, unknown>>,
  contents: { readonly files: number; readonly bytes: number; readonly delayMs?: number },
) {
  const objects = new Map<string, Buffer>()
  for (const name of ['a', 'b', 'c'])
    for (let file = 0; file < contents.files; file++)
      objects.set(`${name}/${file}`, Buffer.alloc(contents.bytes, name))
  const store: CountingStore = await startCountingStore(objects, contents)
  context.after(() => store.close())
  const datasets = Object.fromEntries(
    ['a', 'b', 'c'].map((name) => [name, s3Dataset('bucket', `${name}/`, store.endpoint)]),
  )
  const world = await makeWorld(context, { stage, datasets })
  const prepare = async (name: string, ...options: readonly string[]) => {
    const { code, stderr } = await world.start(['prepare', name, '--task', 't', ...options], { environment })
      .finished
    assert.equal(code, 0, stderr)
  }
  return { store, prepare, world }
}

test('three processes that stage on one node keep within its maxRequests together, and one alone uses all of it', async (context) => {
  const files = 90
  const { store, prepare } = await arrange(context, { maxRequests: 6 }, { files, bytes: 10, delayMs: 100 })
  const first = prepare('a')
  await waitFor('the first at full speed', () => store.mostInFlight() === 6)
  await Promise.all([first, prepare('b'), prepare('c')])
  assert.equal(store.mostInFlight(), 6)
  assert.ok(store.requests() >= 3 * files)
})

test('--bandwidth-limit holds, and stands above the configuration', async (context) => {
  const bytes = 200_000
  const { store, prepare } = await arrange(context, { bandwidthLimit: '1kB/s' }, { files: 4, bytes })
  const beganMs = performance.now()
  await prepare('a', '--bandwidth-limit', '4Mbit/s')
  // Bounds from the arithmetic, not from the machine: 800 kB at 0.5 MB/s, of which the last chunk need not be waited for.
  assert.ok(performance.now() - beganMs > 1000, 'slower than the limit allows')
  assert.equal(store.sentBytes(), 4 * bytes)
})

test('--bandwidth-limit goes along to the nodes that --nodes names', async (context) => {
  const bytes = 200_000
  const { store, prepare, world } = await arrange(context, {}, { files: 4, bytes })
  await world.configure({
    agent: { listen: '127.0.0.1:0' },
    datasets: { a: s3Dataset('bucket', 'a/', store.endpoint) },
  })
  world.start(['agent'], { environment })
  await waitFor('the agent', () => world.query('SELECT 1 FROM nodes WHERE agent IS NOT NULL').length > 0)
  const beganMs = performance.now()
  await prepare('a', '--nodes', 'node-a', '--bandwidth-limit', '4Mbit/s')
  assert.ok(performance.now() - beganMs > 1000, 'slower than the limit allows')
  assert.equal(store.sentBytes(), 4 * bytes)
})
