import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { checkProcess, findProcess, identifyProcess, PROCESS_TREE } from './processes.js'

/** Before any machine booted, ms. */
const LONG_AGO = Number.POSITIVE_INFINITY

test('a process is alive until it ends, and a later one with its pid is another', async () => {
  const child = spawn('sleep', ['60'])
  const holder = identifyProcess(child.pid!)
  assert.ok(holder)
  assert.equal(checkProcess(holder, 0), 'alive')
  assert.equal(checkProcess({ ...holder, startTicks: '1' }, 0), 'dead')
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.equal(checkProcess(holder, 0), 'dead')
  assert.equal(identifyProcess(child.pid!), undefined)
})

test('a zombie has ended', async (context) => {
  // The shell starts a child and becomes sleep, which never reaps it.
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  context.after(() => parent.kill('SIGKILL'))
  const [line] = await once(parent.stdout, 'data')
  const pid = Number(String(line).trim())
  const holder = identifyProcess(pid)
  assert.ok(holder)
  process.kill(pid, 'SIGKILL')
  while (!findProcess(pid)?.isZombie) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(checkProcess(holder, 0), 'dead')
})

test('processes of another boot are dead, those of other machines and namespaces are not known', () => {
  const holder = identifyProcess(process.pid)
  assert.ok(holder)
  assert.equal(checkProcess({ ...holder, bootId: 'another' }, LONG_AGO), 'dead')
  assert.equal(checkProcess({ ...holder, machine: 'another' }, LONG_AGO), 'unknown')
  assert.equal(checkProcess({ ...holder, machine: 'another', bootId: 'another' }, LONG_AGO), 'unknown')
  assert.equal(checkProcess({ ...holder, host: 'its old name' }, 0), 'alive')
  assert.equal(
    checkProcess({ ...holder, host: 'another', bootId: 'another' }, LONG_AGO),
    'unknown',
    'perhaps a clone with the same machine-id',
  )
  assert.equal(
    checkProcess({ ...holder, bootId: 'another' }, 0),
    'unknown',
    'a clone with the same name, too: it was alive after this machine booted',
  )
  assert.equal(checkProcess({ ...holder, pidNamespace: 'another' }, 0), 'unknown')
})

test('a process whose name holds parentheses and spaces is read right', () => {
  assert.equal(findProcess(process.pid)?.parentPid, process.ppid)
  assert.equal(findProcess(2 ** 30), undefined)
})

test('a process that /proc hides is alive as long as the kernel knows its number', () => {
  const holder = identifyProcess(process.pid)
  assert.ok(holder)
  const hidden = (mayRun: boolean) => checkProcess(holder, 0, { find: () => undefined, mayRun: () => mayRun })
  assert.equal(hidden(true), 'alive')
  assert.equal(hidden(false), 'dead')
  assert.equal(PROCESS_TREE.mayRun(1), true, 'to a user who may not signal it, too')
  assert.equal(PROCESS_TREE.mayRun(2 ** 22 + 1), false)
})
