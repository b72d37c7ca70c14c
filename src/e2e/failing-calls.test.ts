import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { makeWorld, writeTree } from '../testing/world.js'

/** Lets one call to a file of the test, or to an open one, fail as the kernel would. */
const PRELOAD = `
const fs = require('node:fs')
const [at, code] = process.env.FAULT.split(' ')
let calls = 0
const readlink = fs.readlinkSync
const isBelow = (path) => /^(\\/proc\\/self\\/fd\\/|BELOW)/.test(path)
function isMeant(place) {
  if (typeof place === 'string') return isBelow(place)
  if (typeof place !== 'number' || place <= 2) return false
  try {
    return isBelow(readlink('/proc/self/fd/' + place)) // Node.js loads our modules by these calls, too
  } catch {
    return true
  }
}
function faulty(name, real, { place = (given) => given[0], fail }) {
  const replaced = function (...given) {
    if (isMeant(place(given, this)) && ++calls === Number(at))
      return fail(Object.assign(new Error(code + ': injected, ' + name), { code, errno: -5, syscall: name }), given)
    return real.apply(this, given)
  }
  for (const symbol of Object.getOwnPropertySymbols(real)) // promisify() asks them
    Object.defineProperty(replaced, symbol, Object.getOwnPropertyDescriptor(real, symbol))
  return replaced
}
const reject = (error) => Promise.reject(error)
for (const name of Object.keys(fs).filter((name) => typeof fs[name] === 'function'))
  if (/Sync$/.test(name) && !/^(close|exists)/.test(name))
    fs[name] = faulty(name, fs[name], { fail: (error) => { throw error } })
  else if (typeof fs[name + 'Sync'] === 'function' && !/^(close|exists)/.test(name))
    fs[name] = faulty(name, fs[name], { fail: (error, given) => void setImmediate(given.at(-1), error) })
for (const name of Object.keys(fs.promises))
  if (typeof fs.promises[name] === 'function')
    fs.promises[name] = faulty(name, fs.promises[name], { fail: reject })
const open = fs.promises.open
let prototype
fs.promises.open = async (...given) => {
  const handle = await open(...given)
  if (prototype === undefined) {
    prototype = Object.getPrototypeOf(handle)
    for (const name of ['read', 'write', 'writeFile', 'readFile', 'stat', 'sync', 'chmod', 'truncate'])
      prototype[name] = faulty('handle.' + name, prototype[name], { place: (_, self) => self.fd, fail: reject })
  }
  return handle
}
require('node:module').syncBuiltinESMExports()
process.on('exit', () => process.env.FAULT_COUNT && fs.appendFileSync(process.env.FAULT_COUNT, calls + '\\n'))
`
const CODES = ['EIO', 'EMFILE', 'ENOSPC', 'EFBIG', 'EACCES', 'EROFS', 'EDQUOT', 'ENOMEM', 'ESTALE']
/** Lets every call fail in turn, which takes minutes. Without it, a few do. */
const isEvery = process.env.DSC_TEST_EVERY_FAULT === '1'
const FILES = { 'a.txt': Buffer.from('a'), 'b/c.txt': Buffer.from('c'), big: randomBytes(25_000_000) }

async function makeFaulty(context: TestContext) {
  const world = await makeWorld(context, { datasets: { flowers: { source: './flowers' } } })
  await writeTree(join(world.directory, 'flowers'), FILES)
  const preload = join(world.directory, 'fault.cjs')
  writeFileSync(preload, PRELOAD.replace('BELOW', world.directory.replaceAll('/', '\\/')))
  const counts = join(world.directory, 'counts')
  const run = (fault: string, words: readonly string[]) =>
    world.start(words, {
      environment: { NODE_OPTIONS: `--require ${preload}`, FAULT: fault, FAULT_COUNT: counts },
    }).finished
  /** The calls that a command makes when none fails. */
  const countCalls = async (words: readonly string[]) => {
    writeFileSync(counts, '')
    await succeeds(run('0 EIO', words))
    return Math.max(...readFileSync(counts, 'utf8').trim().split('\n').map(Number))
  }
  return { ...world, run, countCalls }
}

/** Fails if a published copy lacks bytes. */
function assertWhole(root: string): void {
  const copies = join(root, 'copies', 'flowers')
  for (const copy of existsSync(copies) ? readdirSync(copies) : [])
    for (const [name, body] of Object.entries(FILES))
      assert.ok(readFileSync(join(copies, copy, 'files', name)).equals(body), `${copy}/${name}`)
}

const PREPARE = ['prepare', 'flowers', '--task', 't']
for (const { words, isReady, codes } of [
  { words: PREPARE, isReady: false, codes: CODES },
  { words: PREPARE, isReady: true, codes: ['EIO', 'EMFILE'] },
  { words: ['verify', 'flowers'], isReady: true, codes: ['EACCES', 'ESTALE'] },
  { words: ['evict', 'flowers', '--yes'], isReady: true, codes: ['EROFS', 'EIO'] },
  { words: ['cleanup'], isReady: true, codes: ['ENOSPC', 'EACCES'] },
]) {
  const title = `${words.join(' ')}${isReady ? '' : ', not staged yet'}`
  test(`no call of the kernel that fails is a bug of dsc ${title}, and the next run goes on`, async (context) => {
    const { dsc, run, countCalls, root } = await makeFaulty(context)
    const set = async () => {
      await dsc('release', 'flowers', '--task', 't')
      if (!isReady) await dsc('evict', 'flowers', '--yes')
      else if ((await dsc(...PREPARE)).code !== 0) assert.fail('prepare fails')
      if (words[0] === 'evict') await dsc('release', 'flowers', '--task', 't')
    }
    await set()
    const calls = await countCalls(words)
    assert.ok(calls > 10, `${calls} calls were counted`)
    const faults = isEvery
      ? Array.from({ length: calls }, (_, at) => `${at + 1} ${CODES[at % CODES.length]}`)
      : codes.map((code, index) => `${Math.ceil((calls * (index + 0.5)) / codes.length)} ${code}`)
    for (const fault of faults) {
      if (!isReady || words[0] === 'evict') await set()
      const { stderr, code } = await run(fault, words)
      assert.doesNotMatch(stderr, /internal error/, fault)
      assert.notEqual(code, 1, `${fault}: ${stderr}`)
      if (code !== 0) assert.match(stderr, /\n {2}try: /, `${fault}: ${stderr}`)
      assertWhole(root)
    }
    await succeeds(dsc(...PREPARE))
    assertWhole(root)
  })
}
