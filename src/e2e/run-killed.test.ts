import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { findProcess } from '../platform/processes.js'
import { killWithTest, succeeds } from '../testing/dsc-processes.js'
import { type S3Server, startS3Server } from '../testing/s3-server.js'
import { makeWorld, s3Dataset, type World, waitFor } from '../testing/world.js'

let server: S3Server
let bucket: string

before(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
  await server.putObject(bucket, 'flowers/1.jpg', 'a rose')
})
after(() => server.close())

for (const victims of [['dsc'], ['command'], ['command', 'dsc']] as const) {
  test(`kill -9 of ${victims.join(' and ')}: cleanup brings the count to 0 and nothing else changes`, async (context) => {
    const world = await makeWorld(context, {
      server,
      datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
    })
    await world.dsc('prepare', 'flowers', '--task', 'another')
    const running = world.start(['run', 'flowers', '--', 'sleep', '600'])
    const command = await waitFor('the command', () => {
      const pid = commandOf(world, running.process.pid!)
      // setpriv becomes the command. Until then, the death of dsc may not end it.
      return pid && findProcess(pid)?.commandLine.includes('--pdeathsig') === false && pid
    })
    const before = world.query('SELECT copy_id, state, version, path, charged_bytes FROM copies')
    // The kernel ends the command once dsc is dead. dsc is stopped first, so that both die with neither seeing it.
    if (victims.length === 2) running.process.kill('SIGSTOP')
    for (const victim of victims) process.kill(victim === 'dsc' ? running.process.pid! : command, 'SIGKILL')
    const { code, signal } = await running.finished
    if (victims.length === 1 && victims[0] === 'command') assert.equal(code, 137)
    else assert.equal(signal, 'SIGKILL')
    await waitFor('the end of the command', () => findProcess(command) === undefined)
    await succeeds(world.dsc('cleanup'))
    assert.deepEqual(world.query('SELECT task FROM leases'), [{ task: 'another' }])
    assert.deepEqual(world.query('SELECT copy_id, state, version, path, charged_bytes FROM copies'), before)
    assert.deepEqual(await readdir(join(world.root, 'copies', 'flowers')).then((found) => found.length), 1)
  })
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  test(`run passes ${signal} on, releases, and ends by it like its command`, async (context) => {
    const world = await makeWorld(context, {
      server,
      datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
    })
    const running = world.start(['run', 'flowers', '--', 'sleep', '600'])
    await waitFor('the lease of the command', () => commandOf(world, running.process.pid!))
    running.process.kill(signal)
    assert.equal((await running.finished).signal, signal)
    assert.deepEqual(world.query('SELECT * FROM leases'), [])
  })
}

test('Ctrl-C ends the loop of the shell that dsc runs in', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
  })
  const loop = `for i in 1 2 3; do ${world.commandLine('run', 'flowers', '--', 'sleep', '600')}; echo again; done`
  const shell = killWithTest(context)(['bash', '-c', loop], {
    cwd: world.directory,
    environment: server.environment,
    detached: true,
  })
  context.after(() => stopGroup(shell.process.pid!))
  await waitFor('the lease of the command', () =>
    findProcess(commandOf(world, 0) ?? 0)?.commandLine.includes('sleep\x00600'),
  )
  process.kill(-shell.process.pid!, 'SIGINT') // as a terminal does, to all of its foreground
  const { signal, stdout } = await shell.finished
  assert.deepEqual([signal, stdout], ['SIGINT', ''])
})

test('a command that handles SIGTERM ends as it likes', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset(bucket, 'flowers/', server.endpoint) },
  })
  const running = world.start([
    'run',
    'flowers',
    '--',
    'sh',
    '-c',
    'trap "exit 9" TERM; echo up; while :; do sleep 0.1; done',
  ])
  let output = ''
  running.process.stdout!.on('data', (text: string) => {
    output += text
  })
  await waitFor('the trap', () => output.includes('up'))
  running.process.kill('SIGTERM')
  assert.equal((await running.finished).code, 9)
})

/** Pid of the command: the lease is handed over to it once it runs. */
function commandOf(world: World, dscPid: number): number | undefined {
  const holders = world.query<{ holder: string }>(
    `SELECT holder FROM leases WHERE purpose = 'use' AND task <> 'another'`,
  )
  const pids = holders.map(({ holder }) => Number(JSON.parse(holder).pid))
  return pids.find((pid) => pid !== dscPid)
}

/** Kills what is left of a process group. */
function stopGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing is left.
  }
}
