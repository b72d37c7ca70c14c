import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

/** U+2028 ends a line for JavaScript's own readers of lines, and is a character like others in a name. */
const NAME = 'a\u2028b.txt'

/** One node with an agent, which answers while `use` runs. */
async function withAgent(context: TestContext, use: (world: World) => Promise<void>): Promise<void> {
  const world = await makeWorld(context, {})
  const { directory } = world
  await writeTree(directory, { [`flowers/${NAME}`]: 'a rose', token: 'a token of our agents' })
  await world.configure({
    node: 'n1',
    agent: { listen: '127.0.0.1:0', tokenFile: join(directory, 'token') },
    datasets: { flowers: { source: `file://${directory}/flowers/` } },
  })
  const agent = world.start(['agent', '--json'])
  await new Promise((resolve) => agent.process.stdout!.once('data', resolve))
  try {
    await use(world)
  } finally {
    agent.process.kill()
    await agent.finished
  }
}

test('another node prepares a file whose name holds U+2028, and says so', (context) =>
  withAgent(context, async (world) => {
    await succeeds(
      world.dsc(
        ...['prepare', `file://${world.directory}/flowers/`, '--include', 'a\u2028*'],
        ...['--nodes', 'n1', '--task', 't', '--json'],
      ),
    )
    const status = JSON.parse((await world.dsc('status', '--json')).stdout)
    assert.match(JSON.stringify(status), /"state":"ready"/)
  }))

test('a pattern with U+2028 that matches nothing on another node is an empty source', (context) =>
  withAgent(context, async (world) => {
    const prepared = await world.dsc(
      ...['prepare', `file://${world.directory}/flowers/`, '--include', 'z\u2028*'],
      ...['--nodes', 'n1', '--task', 't'],
    )
    assert.match(prepared.stderr, /1 object listed, none of which passes/)
    assert.equal(prepared.code, 4, prepared.stderr)
  }))
