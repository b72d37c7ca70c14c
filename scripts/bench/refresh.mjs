// `npm run bench:refresh`: what it takes to find out that nothing has changed in a dataset of a million objects, beside
// its first listing. The objects are empty, so that a copy of them can be made; the store (listing-server.mjs) answers
// late. Usage: npm run bench:refresh -- [--keys 1000000] [--delay 30] [--rounds 3] [--at FOLDER]
// --at keeps the staged copy in FOLDER, and takes it from there the next time.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from './read-options.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    keys: { type: 'string', default: '1000000' },
    delay: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '3' },
    at: { type: 'string' },
  },
})
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const folder = values.at ? resolve(values.at) : mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const AWS = {
  AWS_ACCESS_KEY_ID: 'bench',
  AWS_SECRET_ACCESS_KEY: 'bench-secret',
  AWS_CONFIG_FILE: '/dev/null',
}
mkdirSync(folder, { recursive: true })
/** A copy that is kept was listed at this port: at another it would be a copy of another source. */
const portFile = join(folder, 'port')
const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('listing-server.mjs', import.meta.url)), values.keys, values.delay],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, EMPTY: 'yes', PORT: existsSync(portFile) ? readFileSync(portFile, 'utf8') : '0' },
  },
)
try {
  const port = await new Promise((done, failed) => {
    server.stdout.once('data', (line) => done(Number(line)))
    server.once('exit', () => failed(new Error('the server did not begin')))
  })
  writeFileSync(portFile, String(port))
  const dataset = `{ source: 's3://folders/', endpoint: 'http://127.0.0.1:${port}', region: us-east-1, pathStyle: true }`
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: sqlite://${folder}/record.db\ncache: { root: ${folder}/cache }\n` +
      `datasets:\n  staged: ${dataset}\n  unknown: ${dataset}\n`,
  )
  if (!existsSync(join(folder, 'cache/copies/staged'))) {
    const { seconds } = run('prepare', 'staged', '--task', 'bench')
    process.stderr.write(`staged in ${seconds.toFixed(0)} s\n`)
  }
  const rounds = { 'first listing': [], 'refresh, nothing new': [] }
  for (let round = 0; round < Number(values.rounds); round++) {
    rounds['first listing'].push(run('prepare', 'unknown', '--plan', '--json'))
    rounds['refresh, nothing new'].push(run('prepare', 'staged', '--task', 'bench', '--refresh'))
  }
  process.stdout.write(
    `${Number(values.keys).toLocaleString('en')} keys, answers ${values.delay} ms late, ${values.rounds} rounds in turn: median ` +
      `(least–most); node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}\n\n` +
      '| | seconds | CPU seconds | peak MiB |\n|---|---|---|---|\n',
  )
  for (const [name, runs] of Object.entries(rounds)) {
    const [seconds, cpu, rss] = ['seconds', 'cpuSeconds', 'rssMiB'].map((what) =>
      runs.map((one) => one[what]),
    )
    process.stdout.write(
      `| ${name} | ${median(seconds).toFixed(1)} (${Math.min(...seconds).toFixed(1)}–${Math.max(...seconds).toFixed(1)}) ` +
        `| ${median(cpu).toFixed(1)} | ${median(rss).toFixed(0)} |\n`,
    )
  }
} finally {
  server.kill()
  if (!values.at) rmSync(folder, { recursive: true, force: true })
}

function run(...words) {
  const start = performance.now()
  const { status, stderr } = spawnSync(
    '/usr/bin/time',
    ['-f', 'used=%U %S %M', process.execPath, DSC, ...words],
    { cwd: folder, env: { ...process.env, ...AWS }, encoding: 'utf8' },
  )
  const seconds = (performance.now() - start) / 1000
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr.slice(-2000)}`)
  const [, user, system, rss] = /used=(\S+) (\S+) (\S+)/.exec(stderr)
  return { seconds, cpuSeconds: Number(user) + Number(system), rssMiB: Number(rss) / 1024 }
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
