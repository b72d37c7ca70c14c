import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWorld, waitFor, writeTree } from '../testing/world.js'

test('a refusal has an id, and dsc why explains it by that later', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose' })
  const datasets = { flowers: { source: `file://${world.directory}/flowers/` } }
  await world.configure({ datasets, cache: { minFree: '1PiB' } })
  const refused = await world.dsc('prepare', 'flowers', '--task', 't', '--json')
  assert.equal(refused.code, 5)
  const { error } = JSON.parse(refused.stderr)
  assert.match(error.id, /^[0-9a-f]{12}$/)
  const { stdout } = await world.dsc('why', error.id)
  assert.match(stdout, /^flowers was refused on node node-a .* ago, at 2.*Z, for t:\n/)
  assert.ok(stdout.includes(error.message), stdout)
  assert.match(stdout, /now: dsc why flowers/)
  const { failure } = JSON.parse((await world.dsc('why', error.id, '--json')).stdout)
  assert.deepEqual([failure.kind, failure.detail.id, failure.reason], ['refused', error.id, error.message])
  const again = await world.dsc('prepare', 'flowers', '--task', 't')
  const [, id] = /^ {2}details: dsc why ([0-9a-f]{12})$/m.exec(again.stderr)!
  assert.notEqual(id, error.id)
  const history = (await world.dsc('history', 'flowers')).stdout
  assert.ok(history.includes(error.message.replace(/\n\s*/g, '; ')), history)
  assert.equal((await world.dsc('why', 'c0ffee00c0ff')).code, 4)
})

test('an eviction that is refused has an id, too; a dry run leaves nothing in the history', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(world.directory, { 'flowers/1.txt': 'a rose' })
  await world.configure({ datasets: { flowers: { source: `file://${world.directory}/flowers/` } } })
  assert.equal((await world.dsc('prepare', 'flowers', '--task', 't')).code, 0)
  const fail = async (...words: string[]) => JSON.parse((await world.dsc(...words, '--json')).stderr).error
  for (const { words, told, next } of [
    { words: ['flowers'], told: 'an eviction was refused', next: 'dsc why flowers' },
    { words: ['--free', '1GiB'], told: 'an eviction was refused', next: 'dsc status' },
  ]) {
    assert.equal((await fail('evict', ...words, '--dry-run')).id, undefined)
    const error = await fail('evict', ...words, '--yes')
    assert.ok(['COPY_IN_USE', 'QUOTA_EXCEEDED'].includes(error.code))
    const { stdout } = await world.dsc('why', error.id)
    assert.ok(stdout.startsWith(`${told} on node node-a`) && stdout.includes(error.message), stdout)
    assert.ok(stdout.endsWith(`now: ${next}\n`), stdout)
  }
  assert.equal((await world.dsc('history')).stdout.match(/eviction-refused/g)?.length, 2)
})

test('an agent tells what it could not prepare in its log, with the id that the caller sees', async (context) => {
  const world = await makeWorld(context, {})
  const datasets = { gone: { source: `file://${world.directory}/gone/` } }
  await world.configure({ datasets, agent: { listen: '127.0.0.1:0' } })
  const agent = world.start(['agent'])
  let log = ''
  agent.process.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const prepare = ['prepare', 'gone', '--nodes', 'node-a', '--task', 't', '--json']
  const { code, stdout } = await waitFor('the agent', async () => {
    const finished = await world.dsc(...prepare)
    return finished.code !== 11 && finished
  })
  assert.equal(code, 4)
  const [{ error }] = JSON.parse(stdout).nodes
  await waitFor('its log', () => log.includes(`(dsc why ${error.id})`))
  assert.match((await world.dsc('why', error.id)).stdout, /^gone could not be staged on node node-a/)
})
