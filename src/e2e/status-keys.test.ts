import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { needs } from '../testing/needs.js'
import { openTerminal } from '../testing/tmux-terminal.js'
import { makeWorld, waitFor } from '../testing/world.js'

const skip = needs('tmux', 'tmux')
const MIB = 1024 ** 2

/** A node with a leased copy of `small` and a live screen; `large` takes half a minute to stage. */
async function openScreen(context: TestContext) {
  const world = await makeWorld(context, {
    datasets: { small: { source: './small' }, large: { source: './large' } },
    stage: { bandwidthLimit: '2MiB/s' },
  })
  for (const [name, bytes] of [
    ['small', 1000],
    ['large', 64 * MIB],
  ] as const) {
    await mkdir(join(world.directory, name))
    await writeFile(join(world.directory, name, 'data'), Buffer.alloc(bytes, name))
  }
  assert.equal((await world.dsc('prepare', 'small', '--task', 'job-1')).code, 0)
  const terminal = await openTerminal(context, { columns: 120, rows: 24, directory: world.directory })
  const look = async () => {
    await terminal.press(`clear; ${world.commandLine('status')}; echo rc=$?`, 'Enter')
    await terminal.waitFor(/▶ \S+ +node-a/)
  }
  return { world, terminal, look }
}

test('a lease is released on the screen, after a question', { skip }, async (context) => {
  const { world, terminal, look } = await openScreen(context)
  await look()
  await terminal.press('2')
  await terminal.waitFor(/▶ job-1 +small +node-a/)
  await terminal.press('x')
  await terminal.waitFor(/Release small on node-a from job-1\? .* y\/N/)
  await terminal.press('n')
  await terminal.waitFor(/not released/)
  await terminal.press('x', 'y')
  await terminal.waitFor(/released small from job-1/)
  await terminal.waitFor(/No leases/)
  assert.deepEqual(JSON.parse((await world.dsc('leases', '--json')).stdout).leases, [])
})

test('a staging is stopped on the screen: its dsc prepare ends, and what was fetched is kept', {
  skip,
}, async (context) => {
  const { world, terminal, look } = await openScreen(context)
  const staging = world.start(['prepare', 'large', '--task', 'job-2'])
  await waitFor(
    'bytes',
    () => world.query<{ n: number }>('SELECT max(written_bytes) AS n FROM copies')[0]!.n > MIB,
  )
  await look()
  await terminal.waitFor(/▶ large +node-a +◐ █/)
  await terminal.press('x')
  await terminal.waitFor(/Stop staging large on node-a\?/)
  await terminal.press('y')
  const { code, stderr } = await staging.finished
  assert.match(stderr, /stopped before the download was complete/)
  assert.notEqual(code, 0)
  await terminal.waitFor(/large +node-a +◌ stopped at/)
  await terminal.press('x')
  await terminal.waitFor(/it was interrupted: the next dsc prepare continues it/)
  await terminal.press('p')
  await terminal.press('-l', 'large')
  await terminal.press('Enter')
  await terminal.waitFor(/▶ large +node-a +◐ .* \S+:status/)
  await terminal.press('x')
  await terminal.waitFor(/Stop staging large on node-a\?/)
  await terminal.press('y')
  await terminal.waitFor(/large +node-a +◌ stopped at/)
})
