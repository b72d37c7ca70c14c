// dsc beside s5cmd, rclone, boto3 (the AWS CLI shares its engine) and obstore, in turn, against versitygw on loopback,
// and beside `hf` (huggingface_hub) against nginx that answers as a hub.
// --sets of small,medium,large, the last two also with -tls and -hub; --scale: a fraction makes a short run; --tools of
// dsc,s5cmd,rclone,boto3,obstore,hf; all but dsc and boto3 also with `, safe` (default: all that are here).
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCertificate } from '../../dist/testing/certificate.js'
import { DSC, findPrograms, runTimed, versionOf } from './harness/processes.mjs'
import { s3Dataset, startVersitygw, storeEnvironment, upload, writeSettings } from './harness/stores.mjs'
import { count, formatBytes, median, ratio, span, table } from './harness/tables.mjs'
import { startHub } from './stage/hub.mjs'

const COPIER = fileURLToPath(new URL('stage/copy_bucket.py', import.meta.url))
const MIB = 2 ** 20
const SETS = {
  small: { objects: 20_000, bytes: 10 * 1024, without: ['boto3'] }, // it takes minutes
  medium: { objects: 2000, bytes: MIB },
  large: { objects: 4, bytes: 1024 * MIB },
}
/** Which tools read a kind of store. Over TLS, a run would take twice as long with rclone and boto3. */
const READERS = {
  plain: (tool) => !tool.startsWith('hf'),
  tls: (tool) => !/^(hf|rclone|boto3)/.test(tool),
  hub: (tool) => /^(hf|dsc)/.test(tool),
}
/** ext4 looks long for a free inode while many were deleted shortly before: small runs stay until their set is done. */
const MAX_KEPT_BYTES = 512 * MIB
/** Those that need the least processor time of all that do not verify. */
const MADE_SAFE = ['s5cmd', 'rclone', 'obstore', 'hf']

export const benchmark = {
  page: 'stage.md',
  options: {
    rounds: 3,
    sets: 'small,medium,large,medium-tls,large-tls,medium-hub,large-hub',
    scale: 1,
    tools: '',
  },
  smoke: { rounds: 1, scale: 0.002, tools: 'dsc,s5cmd,obstore,hf' },
  async run(bench) {
    const programs = findPrograms(
      'scripts/bench-peers.sh',
      'scripts/s3-servers.sh versitygw',
      'scripts/bench/stage/venv.sh',
    )
    if (!programs.versitygw || !programs.s5cmd)
      return bench.leaveOut('tools', 'versitygw and s5cmd are built with Go')
    const hasHub = !spawnSync('nginx', ['-v']).error && programs.python !== undefined
    const words = bench.given.sets.split(',').filter((word) => hasHub || !word.endsWith('-hub'))
    const sets = words.map((word) => sizeOf(word, bench.given.scale))
    const stores = await startStores(bench, { programs, sets })
    const wanted = bench.given.tools.split(/,(?! )/)
    const known = Object.entries(listTools(programs))
    const tools = known.filter(([name]) => bench.given.tools === '' || wanted.includes(name))
    bench.versions.push('versitygw', basename(programs.s5cmd).replace('-', ' '))
    if (programs.python) bench.versions.push(versionOf(programs.python, COPIER, 'versions'))
    if (programs.rclone) bench.versions.push(versionOf(programs.rclone, 'version'))
    const rows = []
    for (const set of sets) {
      const store = stores[set.kind]
      const those = tools.filter(([tool]) => READERS[set.kind](tool) && !set.without.includes(tool))
      rows.push(...(await bench.alone(() => measureSet(bench, { set, tools: those, store }))))
    }
    const heads = ['objects', 'tool', 'seconds', 'wall ÷ dsc', 'CPU seconds', 'verified GB per CPU second']
    bench.section('tools', table(heads, rows, { texts: 2 }))
  },
}

/** Starts the store, and another over TLS and a hub on the same folder, with the objects of all sets. */
async function startStores(bench, { programs, sets }) {
  const plain = await startVersitygw(bench, programs)
  const filled = new Map(sets.map((set) => [set.name, set]))
  upload(bench, [...filled.values()], {
    ...{ url: plain.url, s5cmd: programs.s5cmd },
    pathOf: (index) => `${index % 100}/${index}.bin`,
  })
  const env = { ...storeEnvironment(), HF_HUB_DISABLE_PROGRESS_BARS: '1', HF_HUB_DISABLE_TELEMETRY: '1' }
  const stores = { plain: { url: plain.url, env } }
  if (sets.some(({ kind }) => kind === 'hub')) {
    const { url } = await startHub(bench, plain.folder, [...filled.values()])
    stores.hub = { url, env: { ...env, HF_HOME: bench.makeFolder('hf') } }
  }
  if (!sets.some(({ kind }) => kind === 'tls')) return stores
  const certificate = makeCertificate(bench.makeFolder('certificate'))
  const { url } = await startVersitygw(bench, programs, plain.folder, certificate)
  const { certFile } = certificate
  return {
    ...stores,
    tls: { url, env: { ...env, AWS_CA_BUNDLE: certFile, SSL_CERT_FILE: certFile } },
  }
}

function measureSet(bench, { set, tools, store }) {
  const { name, objects, bytes, kind } = set
  const where = { plain: '', tls: ', TLS', hub: ', hub' }[kind]
  const what = `${count(objects)} × ${formatBytes(bytes)}${where}`
  const used = []
  measure(bench, { set, tool: tools[0][1], store, used }) // the first reader finds the server's files on disk, not in memory
  const runs = new Map(tools.map(([tool]) => [tool, []]))
  for (let round = 0; round < bench.given.rounds; round++)
    for (const [tool, how] of tools) {
      const run = measure(bench, { set, tool: how, store, used })
      runs.get(tool).push(run)
      const { seconds, cpuSeconds, rssMiB } = run
      bench.progress(
        `${name} ${what} ${round + 1} ${tool}: ${seconds.toFixed(2)} s, CPU ${cpuSeconds.toFixed(2)} s, ${rssMiB.toFixed(0)} MiB`,
      )
    }
  for (const run of used) rmSync(run, { recursive: true, force: true })
  const secondsOf = (tool) => median((runs.get(tool) ?? []).map(({ seconds }) => seconds))
  return tools.map(([tool, { verifies }], at) => {
    const cpuSeconds = median(runs.get(tool).map((run) => run.cpuSeconds))
    const cells = [
      span(runs.get(tool).map((run) => run.seconds)),
      ratio(secondsOf(tool), secondsOf('dsc')),
      cpuSeconds.toFixed(2),
      verifies ? ((objects * bytes) / 1e9 / cpuSeconds).toFixed(2) : '-',
    ]
    return [at === 0 ? what : '', tool, ...cells]
  })
}

/**
 * One run into an empty folder, with the page cache written back before, so that no tool pays for another. Those of
 * large sets get the memory that the run before had: a virtual machine may return free memory to its host, and then the
 * first write to it takes twice the processor time.
 */
function measure(bench, { set: { name, objects, bytes, kind }, tool, store: { url, env }, used }) {
  const cwd = bench.makeFolder('run')
  const target = join(cwd, 'target')
  mkdirSync(target)
  const hub = { source: `hf://datasets/bench/${name}`, endpoint: url }
  writeSettings(cwd, { [name]: kind === 'hub' ? hub : s3Dataset(url, `${name}/`) })
  spawnSync('sync')
  const before = objects * bytes > MAX_KEPT_BYTES ? used.splice(0) : []
  for (const path of before.flatMap(listObjects)) spawnSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0'])
  const run = runTimed(tool.words({ set: name, target, url }), { cwd, env })
  const files = listObjects(cwd)
  const found = files.reduce((sum, path) => sum + statSync(path).size, 0)
  if (files.length !== objects || found !== objects * bytes)
    throw new Error(
      `${tool.words({ set: name, target, url })[0]} on ${name}: ${files.length} files, ${found} bytes`,
    )
  for (const folder of before) rmSync(folder, { recursive: true, force: true })
  used.push(cwd)
  return run
}

/** A file counts once: dsc links those of a hub into the layout of huggingface_hub, too. */
function listObjects(folder) {
  const paths = globSync(`${folder}/**/*.bin`)
  return [...new Map(paths.map((path) => [statSync(path).ino, path])).values()]
}

/** How each tool that is here copies `s3://bench/<set>/` of `url` into `target`, and whether it verifies. */
function listTools({ s5cmd, rclone, python }) {
  const tools = {
    dsc: {
      words: ({ set }) => [...DSC, 'prepare', set, '--task', 'bench'],
      verifies: true,
    },
    s5cmd: {
      words: ({ set, target, url }) => [
        s5cmd,
        '--endpoint-url',
        url,
        'cp',
        `s3://bench/${set}/*`,
        `${target}/`,
      ],
    },
    rclone: rclone && {
      words: ({ set, target, url }) => [
        ...[
          'env',
          '-u',
          'AWS_CA_BUNDLE',
          rclone,
          'copy',
          `:s3:bench/${set}`,
          target,
          '--transfers',
          '64',
          '--checkers',
          '64',
        ],
        ...['--s3-provider', 'Other', '--s3-env-auth', '--s3-endpoint', url, '--s3-force-path-style'],
      ],
    },
    boto3: python && byPython(python, 'boto3'),
    obstore: python && byPython(python, 'obstore'),
    hf: python && { ...byPython(python, 'hf'), sum: 'openssl dgst -sha256' },
  }
  const here = Object.entries(tools).filter(([, tool]) => tool)
  const safe = here.filter(([name]) => MADE_SAFE.includes(name))
  return Object.fromEntries([...here, ...safe.map(([name, tool]) => [`${name}, safe`, makeSafe(tool)])])
}

function byPython(python, name) {
  return { words: ({ set, target, url }) => [python, COPIER, name, url, set, target] }
}

/**
 * A tool that does as much as dsc: what arrived is on the disk and was read once for a checksum, by the quickest
 * program that every system has (CRC-32 with carry-less multiplication; the hub's files have a SHA-256) on two
 * processors.
 */
function makeSafe({ words, sum = 'cksum' }) {
  const pass = `sync -f "$0" && find "$0" -name '*.bin' -print0 | xargs -0 -n 500 -P 2 ${sum} >/dev/null`
  return {
    words: (copy) => ['sh', '-c', `"$@" && ${pass}`, copy.target, ...words(copy)],
    verifies: true,
  }
}

/** A set by its word: `large-tls` has the objects of `large`. */
function sizeOf(word, scale) {
  const [name, kind = 'plain'] = word.split('-')
  const { objects, bytes, without = [] } = SETS[name]
  // Of the large set, the objects shrink instead of their number.
  if (name === 'large')
    return { name, kind, without, objects, bytes: Math.max(MIB, Math.round(bytes * scale)) }
  return { name, kind, without, objects: Math.max(1, Math.round(objects * scale)), bytes }
}
