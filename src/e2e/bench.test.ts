import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, type World, waitFor, writeTree } from '../testing/world.js'

const staged = (world: World) => {
  const folder = join(world.root, 'staging')
  return existsSync(folder) ? readdirSync(folder) : []
}

async function makeFlowers(context: Parameters<typeof makeWorld>[0], cache: object = {}): Promise<World> {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose' })
  await world.configure({
    cache: { ...cache },
    datasets: { flowers: { source: `file://${world.directory}/flowers/` } },
  })
  return world
}

test('dsc bench measures disk, record and store, says what is slow, and leaves nothing behind', async (context) => {
  const world = await makeFlowers(context)
  const { stdout } = await succeeds(world.dsc('bench'))
  for (const line of [/disk +writes +\d/, /disk +small files +\d/, /record +answers +\d/, /store +sends +\d/])
    assert.match(stdout, line)
  assert.match(
    stdout,
    /\n\n(Nothing that was measured is slow\.|The \w+ is slow: .* where dsc needs .*\.)\n$/,
  )
  assert.deepEqual(staged(world), [])
  assert.deepEqual(JSON.parse((await world.dsc('status', '--json')).stdout).copies, [])
  assert.deepEqual(JSON.parse((await world.dsc('history', '--json')).stdout).events, [])
})

test('dsc bench writes nothing where the policy has no room, and says so', async (context) => {
  const world = await makeFlowers(context, { minFree: '1PiB' })
  const { figures, skipped } = JSON.parse((await world.dsc('bench', '--json')).stdout)
  assert.deepEqual(skipped, [{ part: 'disk', reason: 'the policy of this node has no room to write' }])
  assert.deepEqual([...new Set(figures.map(({ part }: { part: string }) => part))], ['record', 'store'])
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`dsc bench that ${signal} stops leaves nothing behind`, async (context) => {
    const world = await makeFlowers(context)
    const running = world.start(['bench'])
    await waitFor('its folder', () => staged(world).length > 0)
    running.process.kill(signal)
    const finished = await running.finished
    assert.equal(finished.signal, signal)
    assert.deepEqual(staged(world), [])
  })
}

test('what a killed dsc bench left is removed by dsc cleanup', async (context) => {
  const world = await makeFlowers(context)
  const running = world.start(['bench'])
  await waitFor('its folder', () => staged(world).length > 0)
  running.process.kill('SIGKILL')
  await running.finished
  assert.equal(staged(world).length, 1)
  assert.equal((await world.dsc('cleanup')).code, 0)
  assert.deepEqual(staged(world), [])
})
