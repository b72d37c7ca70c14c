import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { killWithTest } from './dsc-processes.js'

test('a test ends beside a process that has exited and whose child still holds its output', async (context) => {
  const ends: (() => unknown)[] = []
  const start = killWithTest({ after: (end) => void ends.push(end as () => unknown) })
  const options = { cwd: '/', environment: {}, detached: true } // the child is of its group
  const { process: shell, finished } = start(['sh', '-c', 'sleep 600 & exit 3'], options)
  context.after(async () => {
    process.kill(-shell.pid!, 'SIGKILL')
    await finished
  })
  await once(shell, 'exit')
  const ended = Promise.all(ends.map((end) => end())).then(() => 'ended')
  const later = new Promise((resolve) => setTimeout(resolve, 5_000, 'waits for an exit that was before'))
  assert.equal(await Promise.race([ended, later]), 'ended')
})
