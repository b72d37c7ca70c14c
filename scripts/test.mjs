// Builds, and runs one suite of compiled tests: node scripts/test.mjs SUITE [option or file of node --test …]
// A file that is named takes the place of the suite's own: npm run test:unit -- dist/policy/quota.test.js
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { planDoorTests } from './test-door.mjs'

const ROOT = join(import.meta.dirname, '..')
/** `atOnce`: test files that run side by side; suites that have the machine to themselves have 1. */
const SUITES = {
  unit: { files: ['dist/!(e2e)/**/*.test.js'], atOnce: 2 },
  e2e: { files: ['dist/e2e/!(cluster-)*.test.js'], atOnce: 2 },
  operators: { files: ['dist/e2e/operators/*.test.js'], atOnce: 2 },
  'file-systems': { files: ['dist/e2e/file-systems/*.test.js'], atOnce: 1 },
  web: { files: ['dist/e2e/web/*.test.js'], atOnce: 1 },
  cluster: { files: ['dist/e2e/cluster-*.test.js'], atOnce: 1 },
  model: {
    ...{ files: ['dist/records/*/record-model.test.js'], atOnce: 2, timeoutMs: 1_800_000 },
    environment: () => ({ DSC_TEST_MODEL_RUNS: process.env.DSC_TEST_MODEL_RUNS ?? '10000' }),
  },
  'exchange-faults': {
    ...{ files: ['dist/exchange/faults.test.js'], atOnce: 1, timeoutMs: 1_800_000 },
    environment: () => ({ DSC_TEST_KILLS: '50' }),
  },
  'feed-long': {
    ...{ files: ['dist/feed/arena/arena-space.test.js'], atOnce: 1, timeoutMs: 1_800_000 },
    environment: () => ({ DSC_ARENA_OPERATIONS: '1000000', DSC_TEST_KILLS: '50' }),
    after: ['bash', 'scripts/test-torch.sh', '-k', 'torture'],
  },
  gateway: {
    ...{ files: ['dist/e2e/gateway-{clients,sdks}.test.js'], atOnce: 1, timeoutMs: 1_800_000 },
    environment: () => ({
      DSC_TEST_GATEWAY_GO: sdksOf('go'),
      DSC_TEST_GATEWAY_JAVA: sdksOf('java'),
      DSC_TEST_GATEWAY_JAVASCRIPT: sdksOf('javascript'),
      DSC_TEST_GATEWAY_PYTHON: pythonOf('gateway-venv.sh'),
      DSC_TEST_S3FS_PYTHON: pythonOf('gateway-venv.sh', 's3fs'),
    }),
  },
  hf: {
    ...{ files: ['dist/e2e/hub-clients.test.js'], atOnce: 1 },
    environment: () => ({ DSC_TEST_HF_PYTHON: pythonOf('hf-venv.sh') }),
  },
}

const [name, ...given] = process.argv.slice(2)
const suite = SUITES[name]
if (suite === undefined) {
  process.stderr.write(`usage: node scripts/test.mjs ${Object.keys(SUITES).join('|')}\n`)
  process.exit(2)
}
const isAtDoor = name === 'e2e' && process.env.DSC_TEST_DOOR === '1'
const { files: all, skip } = isAtDoor ? planDoorTests() : suite
const { atOnce, timeoutMs = 600_000, environment = () => ({}), after } = suite
const env = { ...process.env, ...environment() }
process.umask(0o022) // tests say which mode a file has
// Suites that run side by side must not build under each other.
if (!process.env.DSC_TEST_BUILT) run(process.execPath, 'scripts/build.mjs')
const options = [
  `--test-timeout=${timeoutMs}`,
  `--test-concurrency=${atOnce}`,
  ...reporters(process.env.DSC_TEST_SKIPPED),
  ...(skip ? [`--test-skip-pattern=${skip}`] : []),
]
const named = given.some((word) => word.endsWith('.test.js'))
run(process.execPath, '--test', ...options, ...given, ...(named ? [] : all))
if (after) run(...after)

/** Ends this process where a command fails. */
function run(program, ...words) {
  const { status } = spawnSync(program, words, { cwd: ROOT, env, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

/** Besides the report, `DSC_TEST_SKIPPED` names a file that takes the words that repeat the skipped tests. */
function reporters(skippedFile) {
  const shown = ['--test-reporter=spec', '--test-reporter-destination=stdout']
  if (!skippedFile) return shown
  const kept = [
    '--test-reporter=./scripts/bare/skipped-tests.mjs',
    `--test-reporter-destination=${skippedFile}-${name}`,
  ]
  return [...shown, ...kept]
}

function pythonOf(script, ...words) {
  const found = execFileSync(join(ROOT, 'scripts', script), words, { encoding: 'utf8' })
  return join(found.trim(), 'bin/python')
}

/** The command that starts clients of a language; '': what builds them is missing. */
function sdksOf(language) {
  const script = join(ROOT, 'scripts/gateway-sdks/make.sh')
  const { status, stdout } = spawnSync(script, [language], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (status !== 0 && status !== 77) process.exit(1)
  return stdout.trim()
}
