// `npm run bench:stage`: dsc beside s5cmd (also with a sync at the end), the AWS CLI and rclone, in turn, against versitygw on loopback.
// Options: --rounds 5 --sets small,medium,large --scale 1 (a fraction makes a short run) --write (docs/benchmarks/stage.md)
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { cpus, loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    sets: { type: 'string', default: 'small,medium,large' },
    scale: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
  },
})
const MIB = 1024 * 1024
const SETS = {
  small: { objects: 20_000, bytes: 10 * 1024 },
  medium: { objects: 2000, bytes: MIB },
  large: { objects: 4, bytes: 1024 * MIB },
}
const PAGE = 'docs/benchmarks/stage.md'
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const KEYS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' }
/** ext4 looks long for a free inode while many were deleted shortly before: small runs stay until their set is done. */
const MAX_KEPT_BYTES = 512 * MIB
const used = []
const rounds = Number(values.rounds)
const scale = Number(values.scale)
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const peers = Object.fromEntries(lines('scripts/bench-peers.sh').map((line) => line.split('=')))
const gateway = lines('scripts/s3-servers.sh').find((line) => line.startsWith('versitygw='))
if (!gateway || !peers.s5cmd) throw new Error('bench:stage needs versitygw and s5cmd, both built with Go')
const port = await findFreePort()
const endpoint = `http://127.0.0.1:${port}`
const data = join(workspace, 'server')
mkdirSync(data)
const server = spawn(
  gateway.slice('versitygw='.length),
  [
    '--keep-alive', // as S3 does
    '--access',
    KEYS.AWS_ACCESS_KEY_ID,
    '--secret',
    KEYS.AWS_SECRET_ACCESS_KEY,
    '--port',
    `127.0.0.1:${port}`,
    'posix',
    data,
  ],
  { stdio: 'ignore' },
)

/** How each tool copies `s3://bench/<set>/` into `target`, and what it does beyond copying. */
const TOOLS = {
  dsc: {
    words: (set) => [process.execPath, DSC, 'prepare', set, '--task', 'bench'],
    does: 'verifies checksums, fsyncs',
  },
  s5cmd: {
    words: (set, target) => [
      peers.s5cmd,
      '--endpoint-url',
      endpoint,
      'cp',
      `s3://bench/${set}/*`,
      `${target}/`,
    ],
    does: 'neither',
  },
  // What s5cmd would take if its files, too, were to survive a power cut.
  's5cmd+sync': {
    words: (set, target) => [
      'sh',
      '-c',
      '"$0" --endpoint-url "$1" cp "$2" "$3/" && sync -f "$3"',
      peers.s5cmd,
      endpoint,
      `s3://bench/${set}/*`,
      target,
    ],
    does: 'no checksums, syncs the file system at the end',
  },
  rclone: {
    words: (set, target) => [
      peers.rclone,
      'copy',
      `:s3:bench/${set}`,
      target,
      '--transfers',
      '64',
      '--checkers',
      '64',
      '--s3-provider',
      'Other',
      '--s3-env-auth',
      '--s3-endpoint',
      endpoint,
      '--s3-force-path-style',
    ],
    does: 'verifies MD5, no fsync',
  },
  aws: {
    words: (set, target) => [
      peers.aws,
      '--endpoint-url',
      endpoint,
      's3',
      'cp',
      '--recursive',
      '--only-show-errors',
      `s3://bench/${set}/`,
      target,
    ],
    does: 'neither',
  },
}

try {
  await untilUp()
  upload()
  const results = []
  for (const set of values.sets.split(',')) {
    measure('s5cmd', set) // whoever reads first finds the server's files on disk instead of in memory
    for (let round = 0; round < rounds; round++) {
      for (const tool of Object.keys(TOOLS).filter((name) => name === 'dsc' || peers[name.split('+')[0]])) {
        const result = { set, tool, ...measure(tool, set) }
        results.push(result)
        process.stderr.write(`${set} round ${round + 1} ${tool}: ${result.seconds.toFixed(2)} s\n`)
      }
    }
    for (const run of used.splice(0)) rmSync(run, { recursive: true, force: true })
  }
  const text = format(results)
  process.stdout.write(text)
  if (values.write) {
    const old = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : ''
    const notes = old.includes('\n## ') ? old.slice(old.indexOf('\n## ')) : '' // what people made of the table
    writeFileSync(PAGE, `# Staging beside other tools\n\n${text}${notes}`)
  }
} finally {
  server.kill()
  rmSync(workspace, { recursive: true, force: true })
}

/** Puts the objects there through the protocol, so that the server knows their etags. */
function upload() {
  for (const set of values.sets.split(',')) {
    const folder = join(workspace, 'upload', set)
    mkdirSync(folder, { recursive: true })
    const { objects, bytes } = sizeOf(set)
    const block = Buffer.alloc(bytes)
    for (let index = 0; index < objects; index++) {
      block.writeUInt32LE(index)
      mkdirSync(join(folder, `${index % 100}`), { recursive: true })
      writeFileSync(join(folder, `${index % 100}`, `${index}.bin`), block)
    }
  }
  execFileSync(peers.s5cmd, ['--endpoint-url', endpoint, 'mb', 's3://bench'], { env: environment() })
  execFileSync(
    peers.s5cmd,
    ['--endpoint-url', endpoint, 'cp', `${join(workspace, 'upload')}/`, 's3://bench/'],
    {
      env: environment(),
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  rmSync(join(workspace, 'upload'), { recursive: true })
}

/** One run into an empty folder, with the page cache written back before, so that no tool pays for another. */
function measure(tool, set) {
  const run = mkdtempSync(join(workspace, 'run-'))
  const target = join(run, 'target')
  mkdirSync(target)
  writeFileSync(
    join(run, 'dsc.yaml'),
    `record: sqlite://${run}/record.db\ncache: { root: ${run}/cache }\ndatasets:\n  ${set}: { source: 's3://bench/${set}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
  )
  spawnSync('sync')
  const [program, ...words] = TOOLS[tool].words(set, target)
  const start = performance.now()
  const { status, stderr } = spawnSync('/usr/bin/time', ['-f', 'used=%U %S %M', program, ...words], {
    cwd: run,
    env: environment(),
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const seconds = (performance.now() - start) / 1000
  if (status !== 0) throw new Error(`${tool} on ${set} ended with ${status}: ${stderr.slice(-2000)}`)
  const [, user, system, rss] = /used=(\S+) (\S+) (\S+)/.exec(stderr)
  const found = countFiles(tool === 'dsc' ? join(run, 'cache', 'copies') : target)
  const { objects, bytes } = sizeOf(set)
  if (found.files !== objects || found.bytes !== objects * bytes)
    throw new Error(`${tool} on ${set}: ${JSON.stringify(found)}`)
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

function format(results) {
  const text = [
    `${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)} at the end; node ${process.versions.node}, versitygw, ${versions()}.`,
    `Everything on one machine and one disk; the server shares the processors. ${rounds} rounds, tools in turn: median (least–most). Command: \`npm run bench:stage -- --rounds ${rounds} --sets ${values.sets} --scale ${scale} --write\`\n`,
    `| objects | tool | seconds | wall ÷ dsc | CPU seconds | peak MiB | objects/s | MB/s | safety |`,
    '|---|---|---|---|---|---|---|---|---|',
  ]
  for (const set of values.sets.split(',')) {
    const { objects, bytes } = sizeOf(set)
    const of = (tool) => results.filter((result) => result.set === set && result.tool === tool)
    const base = median(of('dsc').map(({ seconds }) => seconds))
    for (const tool of Object.keys(TOOLS)) {
      const runs = of(tool)
      if (runs.length === 0) continue
      const seconds = runs.map((run) => run.seconds)
      const middle = median(seconds)
      text.push(
        `| ${objects.toLocaleString('en')} × ${formatBytes(bytes)} | ${tool} | ${middle.toFixed(2)} (${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)}) | ${(middle / base).toFixed(2)} | ${median(runs.map(({ cpuSeconds }) => cpuSeconds)).toFixed(2)} | ${median(runs.map(({ rssMiB }) => rssMiB)).toFixed(0)} | ${(objects / middle).toFixed(0)} | ${((objects * bytes) / 1e6 / middle).toFixed(1)} | ${TOOLS[tool].does} |`,
      )
    }
  }
  return `${text.join('\n')}\n`
}

function versions() {
  const first = (program, ...words) =>
    `${spawnSync(program, words, { encoding: 'utf8' }).stdout}`.split('\n')[0]
  return [
    // Built by `go install`, it does not know its version; the file is named for it.
    basename(peers.s5cmd).replace('-', ' '),
    ...(peers.aws ? [first(peers.aws, '--version')] : []),
    ...(peers.rclone ? [first(peers.rclone, 'version')] : []),
  ].join(', ')
}

function sizeOf(set) {
  const { objects, bytes } = SETS[set]
  // Of the large set, the objects shrink instead of their number.
  if (set === 'large') return { objects, bytes: Math.max(MIB, Math.round(bytes * scale)) }
  return { objects: Math.max(1, Math.round(objects * scale)), bytes }
}

function formatBytes(bytes) {
  if (bytes >= 1024 * MIB) return `${bytes / 1024 / MIB} GiB`
  return bytes >= MIB ? `${Math.round(bytes / MIB)} MiB` : `${bytes / 1024} KiB`
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}

function environment() {
  const { AWS_CA_BUNDLE: _, AWS_PROFILE: __, ...inherited } = process.env
  return {
    ...inherited,
    ...KEYS,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  }
}

function lines(script) {
  return execFileSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
    .trim()
    .split('\n')
    .filter(Boolean)
}

async function untilUp() {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (
      await fetch(endpoint).then(
        () => true,
        () => false,
      )
    )
      return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('versitygw does not answer')
}

function findFreePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = probe.address()
      probe.close(() => resolve(free))
    })
  })
}
