// `npm run bench:stage`: dsc beside s5cmd, rclone and the AWS CLI, as they are and made as safe, in turn, against
// versitygw on loopback.
// Options: --rounds 5 --sets small,medium,large --scale 1 (a fraction makes a short run) --tools dsc,s5cmd,rclone,aws
// (with ', safe' each; default: all) --write (docs/benchmarks/stage.md)
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from './read-options.mjs'
import { formatReport, writePage } from './stage-report.mjs'
import { describeVersions, findPrograms, listTools } from './stage-tools.mjs'
import { startVersitygw, storeEnvironment, upload } from './versitygw.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    rounds: { type: 'string', default: '5' },
    sets: { type: 'string', default: 'small,medium,large' },
    scale: { type: 'string', default: '1' },
    tools: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const MIB = 1024 * 1024
const SETS = {
  small: { objects: 20_000, bytes: 10 * 1024 },
  medium: { objects: 2000, bytes: MIB },
  large: { objects: 4, bytes: 1024 * MIB },
}
/** ext4 looks long for a free inode while many were deleted shortly before: small runs stay until their set is done. */
const MAX_KEPT_BYTES = 512 * MIB
const used = []
const rounds = Number(values.rounds)
const scale = Number(values.scale)
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const peers = findPrograms('scripts/bench-peers.sh')
const store = await startVersitygw(workspace, peers)
const { endpoint } = store
const known = listTools(peers, endpoint)
const wanted = values.tools?.split(/,(?! )/) ?? Object.keys(known)
const tools = Object.fromEntries(Object.entries(known).filter(([name]) => wanted.includes(name)))
const sets = values.sets.split(',').map(sizeOf)

try {
  upload(sets, { workspace, endpoint, s5cmd: peers.s5cmd })
  const results = []
  for (const set of sets) {
    measure('s5cmd', set) // whoever reads first finds the server's files on disk instead of in memory
    for (let round = 0; round < rounds; round++) {
      for (const tool of Object.keys(tools)) {
        const result = { set: set.name, tool, ...measure(tool, set) }
        results.push(result)
        process.stderr.write(`${set.name} round ${round + 1} ${tool}: ${result.seconds.toFixed(2)} s\n`)
      }
    }
    for (const run of used.splice(0)) rmSync(run, { recursive: true, force: true })
  }
  const command = `npm run bench:stage -- --rounds ${rounds} --sets ${values.sets} --scale ${scale}${values.tools ? ` --tools '${values.tools}'` : ''} --write`
  const versions = describeVersions(peers)
  const text = formatReport({ results, sets, tools, rounds, versions, command })
  process.stdout.write(text)
  if (values.write) writePage(text)
} finally {
  store.stop()
  rmSync(workspace, { recursive: true, force: true })
}

/** One run into an empty folder, with the page cache written back before, so that no tool pays for another. */
function measure(tool, { name, objects, bytes }) {
  const run = mkdtempSync(join(workspace, 'run-'))
  const target = join(run, 'target')
  mkdirSync(target)
  writeFileSync(
    join(run, 'dsc.yaml'),
    `record: sqlite://${run}/record.db\ncache: { root: ${run}/cache }\ndatasets:\n  ${name}: { source: 's3://bench/${name}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
  )
  spawnSync('sync')
  const [program, ...words] = known[tool].words(name, target)
  const start = performance.now()
  const { status, stderr } = spawnSync('/usr/bin/time', ['-f', 'used=%U %S %M', program, ...words], {
    cwd: run,
    env: storeEnvironment(),
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const seconds = (performance.now() - start) / 1000
  if (status !== 0) throw new Error(`${tool} on ${name} ended with ${status}: ${stderr.slice(-2000)}`)
  const [, user, system, rss] = /used=(\S+) (\S+) (\S+)/.exec(stderr)
  const found = countFiles(tool === 'dsc' ? join(run, 'cache', 'copies') : target)
  if (found.files !== objects || found.bytes !== objects * bytes)
    throw new Error(`${tool} on ${name}: ${JSON.stringify(found)}`)
  if (objects * bytes > MAX_KEPT_BYTES) rmSync(run, { recursive: true, force: true })
  else used.push(run)
  return { seconds, cpuSeconds: Number(user) + Number(system), rssMiB: Number(rss) / 1024 }
}

function countFiles(folder) {
  const found = { files: 0, bytes: 0 }
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.name.endsWith('.bin')) continue
    found.files += 1
    found.bytes += statSync(join(entry.parentPath, entry.name)).size
  }
  return found
}

function sizeOf(name) {
  const { objects, bytes } = SETS[name]
  // Of the large set, the objects shrink instead of their number.
  if (name === 'large') return { name, objects, bytes: Math.max(MIB, Math.round(bytes * scale)) }
  return { name, objects: Math.max(1, Math.round(objects * scale)), bytes }
}
