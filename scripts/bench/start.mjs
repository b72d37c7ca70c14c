// Writes docs/benchmarks/start.md: how large the packages are, and how long dsc takes to start beside `node -e 0`.
//   npm run package && npm run bench:start [rounds]
// Run it on a machine that does nothing else; the page says how busy it was.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '../..')
const PACKAGES = join(ROOT, 'dist-packages')
const PROGRAM = join(PACKAGES, `dsc-linux-${process.arch}`)
const ROUNDS = Number(process.argv[2] ?? 30)
/** Above this load average another program had one of the cores for a good part of the time. */
const QUIET_LOAD = 0.3

if (!existsSync(PROGRAM)) {
  process.stderr.write(`there is no ${PROGRAM}: npm run package\n`)
  process.exit(1)
}
const [load] = loadavg()
const workspace = mkdtempSync(join(tmpdir(), 'dsc-start-'))
try {
  const times = await measureStarts()
  writeFileSync(join(ROOT, 'docs/benchmarks/start.md'), formatPage(listSizes(), times))
} finally {
  rmSync(workspace, { recursive: true, force: true })
}

function listSizes() {
  const paths = globSync(`dsc{-linux-${process.arch},_data-*.whl,-*.tgz,_*.deb,-*.rpm}`, {
    cwd: PACKAGES,
  }).sort()
  const compressed = execFileSync('sh', ['-c', 'xz -T0 -3 -c "$1" | wc -c', 'sh', PROGRAM], {
    encoding: 'utf8',
  })
  return [
    ...paths.map((path) => [path, statSync(join(PACKAGES, path)).size]),
    [`${basename(PROGRAM)}, compressed by xz -3`, Number(compressed)],
  ]
}

/** Runs each command in turn, so that whatever slows the machine slows all of them. */
async function measureStarts() {
  mkdirSync(join(workspace, 'data'))
  for (let file = 0; file < 100; file++)
    writeFileSync(join(workspace, 'data', `${file}.txt`), `sample ${file}`)
  writeFileSync(
    join(workspace, 'dsc.yaml'),
    `record: sqlite://${workspace}/record.db\ncache: { root: ${workspace}/cache }\n` +
      `datasets: { data: { source: ${pathToFileURL(join(workspace, 'data'))}/ } }\n`,
  )
  // A dsc.yaml that changed within the last two seconds is parsed anew: it could change again in the same tick.
  await new Promise((resolve) => setTimeout(resolve, 2500))
  const installed = [process.execPath, join(ROOT, 'bin/dsc.js')]
  const prepare = ['prepare', 'data', '--task', 'bench']
  const commands = {
    '`node -e 0`': [process.execPath, '-e', '0'],
    '`dsc --version`, npm package': [...installed, '--version'],
    '`dsc --version`, executable': [PROGRAM, '--version'],
    '`dsc prepare` of a ready copy, npm package': [...installed, ...prepare],
    '`dsc prepare` of a ready copy, executable': [PROGRAM, ...prepare],
    '`dsc status`, executable': [PROGRAM, 'status'],
  }
  for (const words of Object.values(commands)) for (let warmUp = 0; warmUp < 3; warmUp++) run(words)
  const times = Object.fromEntries(Object.keys(commands).map((name) => [name, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, words] of Object.entries(commands)) times[name].push(run(words))
  return times
}

function run([program, ...words]) {
  const startMs = performance.now()
  const environment = { ...process.env, XDG_CACHE_HOME: join(workspace, 'home') }
  const { status, stderr } = spawnSync(program, words, { cwd: workspace, encoding: 'utf8', env: environment })
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return performance.now() - startMs
}

function formatPage(sizes, times) {
  return [
    '# Start and size',
    '',
    '<!-- Written by `npm run bench:start`: change scripts/bench/start.mjs, not this page. -->',
    'What people download, and what a job pays to call dsc.',
    '',
    '| package | MB |',
    '|---|---|',
    ...sizes.map(([name, bytes]) => `| ${name} | ${(bytes / 1e6).toFixed(1)} |`),
    '',
    ...(load > QUIET_LOAD ? formatBusy() : formatTimes(times)),
    '',
    '<!-- not run: it needs the packages, and a quiet machine -->',
    '```sh',
    'npm run package && npm run bench:start',
    '```',
    '',
  ].join('\n')
}

/** Times of a busy machine would be taken for dsc's own. */
function formatBusy() {
  return ['The times await a run on a machine that does nothing else: this one was busy.']
}

function formatTimes(times) {
  const base = median(times['`node -e 0`'])
  return [
    `Each command ran as a whole process, in turn with the others, ${ROUNDS} times after three to warm up; Node`,
    `${process.versions.node}, ${cpus().length} × ${cpus()[0].model}, load ${load.toFixed(2)} before. The executable unpacks itself once, at its first`,
    'start, which is not among these.',
    '',
    '| command | median, ms | fastest to slowest, ms | × `node -e 0` |',
    '|---|---|---|---|',
    ...Object.entries(times).map(([name, ms]) => {
      const sorted = ms.toSorted((a, b) => a - b)
      const range = `${sorted[0].toFixed(0)} to ${sorted.at(-1).toFixed(0)}`
      return `| ${name} | ${median(ms).toFixed(0)} | ${range} | ${(median(ms) / base).toFixed(2)} |`
    }),
  ]
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}
