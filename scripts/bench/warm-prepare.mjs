// What a warm `dsc prepare` costs as a whole process, beside `node -e 0`, in turn. Usage: npm run bench:warm
// With DSC_BIN=<file>, of the executable file that `npm run package` makes.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const RUNS = Number(process.argv[2] ?? 20)
const DSC = process.env.DSC_BIN
  ? [process.env.DSC_BIN]
  : [process.execPath, fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))]
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))

try {
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
  const commands = {
    'node -e 0': [process.execPath, '-e', '0'],
    'dsc prepare, warm': [...DSC, 'prepare', 'data', '--task', 'bench'],
  }
  for (const words of Object.values(commands)) for (let warmUp = 0; warmUp < 3; warmUp++) run(words)
  const times = Object.fromEntries(Object.keys(commands).map((name) => [name, []]))
  for (let round = 0; round < RUNS; round++) {
    for (const [name, words] of Object.entries(commands)) {
      times[name].push(run(words))
    }
  }
  process.stdout.write(
    `${RUNS} runs each, in turn; node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}\n`,
  )
  const base = times['node -e 0']
  for (const [name, wall] of Object.entries(times)) {
    const ratio = (median(wall) / median(base)).toFixed(2)
    process.stdout.write(`${name.padEnd(20)} ${describe(wall)}, ${ratio} × node -e 0\n`)
  }
} finally {
  rmSync(workspace, { recursive: true, force: true })
}

function run([program, ...words]) {
  const start = performance.now()
  const { status, stderr } = spawnSync(program, words, { cwd: workspace, encoding: 'utf8' })
  const wallMs = performance.now() - start
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return wallMs
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

function describe(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return `${median(values).toFixed(1)} ms (${sorted[0].toFixed(1)}–${sorted.at(-1).toFixed(1)})`
}
