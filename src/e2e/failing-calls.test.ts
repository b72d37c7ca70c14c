import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeWorld, writeTree } from '../testing/world.js'

/** Lets one call to a file of the test, or to an open one, fail as the kernel would. */
const PRELOAD = `
const fs = require('node:fs')
const [at, code] = process.env.FAULT.split(' ')
let calls = 0
const isMeant = (place) =>
  typeof place === 'number' ? place > 2 : typeof place === 'string' && /^(\\/proc\\/self\\/fd\\/|BELOW)/.test(place)
function faulty(name, real, fail) {
  return function (...given) {
    if (isMeant(given[0]) && ++calls === Number(at))
      return fail(Object.assign(new Error(code + ': injected, ' + name), { code, errno: -5, syscall: name }))
    return real.apply(this, given)
  }
}
for (const name of Object.keys(fs))
  if (/Sync$/.test(name) && !/^(close|exists)/.test(name))
    fs[name] = faulty(name, fs[name], (error) => { throw error })
for (const name of Object.keys(fs.promises))
  if (typeof fs.promises[name] === 'function')
    fs.promises[name] = faulty(name, fs.promises[name], (error) => Promise.reject(error))
require('node:module').syncBuiltinESMExports()
process.on('exit', () => process.env.FAULT_COUNT && fs.appendFileSync(process.env.FAULT_COUNT, calls + '\\n'))
`
const CODES = ['EIO', 'EMFILE', 'ENOSPC', 'EFBIG', 'EACCES', 'EROFS', 'EDQUOT', 'ENOMEM']

async function makeFaulty(context: TestContext) {
  const world = await makeWorld(context, { datasets: { flowers: { source: './flowers' } } })
  const files = { 'a.txt': 'a', 'b/c.txt': 'c', big: randomBytes(25_000_000) }
  await writeTree(join(world.directory, 'flowers'), files)
  const preload = join(world.directory, 'fault.cjs')
  writeFileSync(preload, PRELOAD.replace('BELOW', world.directory.replaceAll('/', '\\/')))
  const counts = join(world.directory, 'counts')
  const run = (fault: string) =>
    world.start(['prepare', 'flowers', '--task', 't'], {
      environment: { NODE_OPTIONS: `--require ${preload}`, FAULT: fault, FAULT_COUNT: counts },
    }).finished
  return { ...world, files, counts, run }
}

test('no call of the kernel that fails is a bug of dsc, and the next run goes on', async (context) => {
  const { dsc, run, files, counts } = await makeFaulty(context)
  const clean = async () => {
    await dsc('release', 'flowers', '--task', 't')
    await dsc('evict', 'flowers', '--yes')
  }
  assert.equal((await run('0 EIO')).code, 0)
  const calls = Math.max(...readFileSync(counts, 'utf8').trim().split('\n').map(Number))
  assert.ok(calls > 50, `${calls} calls were counted`)
  for (const [index, code] of CODES.entries()) {
    await clean()
    const fault = `${Math.floor((calls * (index + 0.5)) / CODES.length)} ${code}`
    const { stderr, code: exitCode } = await run(fault)
    assert.doesNotMatch(stderr, /internal error/, fault)
    assert.notEqual(exitCode, 1, `${fault}: ${stderr}`)
  }
  const { code, stdout, stderr } = await dsc('prepare', 'flowers', '--task', 't')
  assert.equal(code, 0, stderr)
  for (const [name, body] of Object.entries(files))
    assert.ok(readFileSync(join(stdout.trim(), name)).equals(Buffer.from(body)), name)
})
