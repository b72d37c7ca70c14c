// Asks whether a test would notice: draws mutants of the core (scripts/mutate/find-mutants.mjs), compiles each into a
// copy of dist, and runs the tests that import the file, the nearest first, until one fails. Prints each as `killed`,
// `survived` or `timed out` (a hanging mutant, or a slow machine: look), then the survivors, and what each suite killed.
//   npm run mutate -- --count 200 --seed 1
//     --only policy              mutants of files whose path contains this
//     --tests 6                  at most so many test files for a mutant
//     --far 'e2e/quota.test.js'  survivors also meet these tests of dist (several: separated by commas)
//     --slack 30                 seconds that a test may take beyond three times what it takes without a mutant
import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { transformSync } from 'esbuild'
import picomatch from 'picomatch'
import { makeBundles } from './bundles.mjs'
import { findMutants } from './mutate/find-mutants.mjs'
import { mulberry32 } from './seeded-random.mjs'
import { isTest, readSource } from './source/read-source.mjs'

/**
 * What must not be wrong: who may have what, who holds what, what is published, which sample comes when. Not the
 * adapter of PostgreSQL: each of its tests starts a server.
 */
const CORE = [
  'policy/**',
  'records/!(postgres)/**',
  'records/*.ts',
  'cache/{leases,eviction,prepare}/**',
  'cache/download/publish-copy.ts',
  'open/**',
  'feed/plan/**',
  'exchange/plan/**',
  'memory/plan/**',
]
const SERVER = /^records\/postgres\//
/** Tests that start no program and no thread from a bundle, which takes seconds to make. */
const WITHOUT_BUNDLES = /^(policy|records|feed\/plan|exchange|memory)\//
/** A test that takes longer than this without a mutant is left out. */
const LONGEST_MS = 180_000
/** Imports between a file and a test that is still near to it: in its own room at the top, and anywhere else. */
const NEAR_STEPS = { ownRoom: 6, elsewhere: 2 }

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: '' },
    tests: { type: 'string', default: '6' },
    far: { type: 'string', default: '' },
    slack: { type: 'string', default: '30' },
  },
})
const farTests = values.far === '' ? [] : values.far.split(',')

const files = readSource()
const usersOf = invertImports(files)
const place = makePlace()
const dist = join(place, 'dist')
process.on('exit', () => rmSync(place, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
const bundlesOf = await makeBundles(dist)
const beganMs = performance.now()
const timeWithout = new Map()

const mutants = draw(Number(values.count), Number(values.seed))
console.log(`${mutants.length} mutants, seed ${values.seed}`)
const results = []
for (const [at, mutant] of mutants.entries()) {
  const result = { ...mutant, ...(await tryMutant(mutant)) }
  results.push(result)
  const minutes = ((performance.now() - beganMs) / 60_000).toFixed(1)
  console.log(`${at + 1}/${mutants.length} ${minutes} min  ${describe(result)}`)
}
report(results)

/** A folder like the checkout, with its own compiled modules; what is not compiled is linked to. */
function makePlace() {
  const folder = mkdtempSync(join(tmpdir(), 'dsc-mutate-'))
  for (const name of readdirSync('.')) {
    if (name === 'dist' || name === 'bin') cpSync(name, join(folder, name), { recursive: true })
    else if (!name.startsWith('.')) symlinkSync(resolve(name), join(folder, name))
  }
  return folder
}

/** File → the files that import it, for more than its types. */
function invertImports(all) {
  const users = new Map()
  for (const { path, imports } of all.values())
    for (const { target, isType } of imports)
      if (target !== undefined && !isType) users.set(target, (users.get(target) ?? new Set()).add(path))
  return users
}

/** Draws mutants, the same for the same seed and source. */
function draw(count, seed) {
  const isCore = picomatch(CORE)
  const chosen = [...files.values()].filter(
    ({ path }) => isCore(path) && !isTest(path) && path.includes(values.only),
  )
  const all = chosen.flatMap(({ path, text }) => findMutants(text).map((mutant) => ({ path, ...mutant })))
  const random = mulberry32(seed)
  for (let at = all.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1))
    const moved = all[at]
    all[at] = all[other]
    all[other] = moved
  }
  return all.slice(0, count)
}

/**
 * Test files that import the file, directly or through others: first the one beside it, then those of its folder, then
 * those of its room at the top (the contracts of the record stand beside its engines).
 */
function findNearTests(path) {
  const steps = new Map([[path, 0]])
  for (const [file, step] of steps) {
    if (step === NEAR_STEPS.ownRoom) continue
    for (const user of usersOf.get(file) ?? []) if (!steps.has(user)) steps.set(user, step + 1)
  }
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  const isInFolder = (test) => test.startsWith(folder)
  const isInRoom = (test) => test.split('/')[0] === path.split('/')[0]
  const own = path.replace(/\.tsx?$/, '.test.')
  const rank = (test) =>
    test.startsWith(own) ? 0 : isInFolder(test) ? steps.get(test) : 10 + steps.get(test)
  return [...steps.keys()]
    .filter((test) => /\.test\.tsx?$/.test(test) && !test.startsWith('e2e/'))
    .filter((test) => isInRoom(test) || steps.get(test) <= NEAR_STEPS.elsewhere)
    .filter((test) => !SERVER.test(test))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .slice(0, Number(values.tests))
    .map((test) => test.replace(/\.tsx?$/, '.js'))
}

async function tryMutant({ path, start, end, text }) {
  const tests = [...findNearTests(path), ...farTests]
  for (const test of tests) if (!timeWithout.has(test)) timeWithout.set(test, await measure(test))
  const source = files.get(path).text
  const compiled = path.replace(/\.tsx?$/, '.js')
  const bundles = tests.every((test) => WITHOUT_BUNDLES.test(test))
    ? []
    : [...bundlesOf].filter(([, inputs]) => inputs.includes(compiled)).map(([name]) => name)
  const changed = [compiled, ...bundles.map((name) => `${name}.cjs`)].map((name) => join(dist, name))
  const originals = changed.map((file) => readFileSync(file))
  try {
    const mutated = source.slice(0, start) + text + source.slice(end)
    const { code } = transformSync(mutated, { loader: 'ts', format: 'esm', target: 'es2024' })
    writeFileSync(join(dist, compiled), code)
    await makeBundles(dist, bundles)
    return await meetTests(tests)
  } finally {
    for (const [at, file] of changed.entries()) writeFileSync(file, originals[at])
  }
}

async function meetTests(tests) {
  let slow
  let met = 0
  for (const test of tests) {
    const without = timeWithout.get(test)
    if (without === undefined) continue // fails without a mutant, too
    met += 1
    const { outcome } = await run(test, without * 3 + Number(values.slack) * 1000)
    if (outcome === 'failed') return { outcome: 'killed', by: test }
    if (outcome === 'timed out') slow ??= test
  }
  return slow ? { outcome: 'timed out', by: slow } : { outcome: 'survived', met }
}

/** How long a test takes without a mutant, ms; undefined, and a line, where it fails. */
async function measure(test) {
  const { outcome, tookMs } = await run(test, LONGEST_MS)
  if (outcome === 'passed') return tookMs
  console.log(`${test} ${outcome} without a mutant: left out`)
  return undefined
}

function run(test, limitMs) {
  const file = join(dist, test)
  if (!existsSync(file)) return { outcome: 'failed', tookMs: 0 }
  const startedMs = performance.now()
  const env = { ...process.env, NODE_COMPILE_CACHE: join(place, 'compile-cache') }
  const child = spawn(process.execPath, [file], { cwd: place, detached: true, stdio: 'ignore', env })
  return new Promise((done) => {
    let outcome
    const limit = setTimeout(() => {
      outcome = 'timed out'
      process.kill(-child.pid, 'SIGKILL') // with all that it started
    }, limitMs)
    child.on('exit', (code) => {
      clearTimeout(limit)
      outcome ??= code === 0 ? 'passed' : 'failed'
      done({ outcome, tookMs: performance.now() - startedMs })
    })
  })
}

function describe({ outcome, path, line, change, by, met }) {
  const why = by ? ` by ${by}` : ` ${met} tests`
  return `${outcome.padEnd(9)} src/${path}:${line}  ${change} [${why.trim()}]`
}

function report(all) {
  const of = (outcome) => all.filter((one) => one.outcome === outcome)
  console.log(
    `\nof ${all.length}: ${of('killed').length} killed, ${of('timed out').length} timed out, ${of('survived').length} survived`,
  )
  for (const one of [...of('timed out'), ...of('survived')]) console.log(describe(one))
  const suites = new Map()
  for (const { by } of of('killed')) suites.set(by, (suites.get(by) ?? 0) + 1)
  console.log('\nkilled first by')
  for (const [test, count] of [...suites].sort((a, b) => b[1] - a[1]))
    console.log(`${String(count).padStart(4)} ${test}`)
}
