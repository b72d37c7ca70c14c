// dsc beside s5cmd, rclone and the AWS CLI, as they are and made as safe, in turn, against versitygw on loopback.
// --sets of small,medium,large; --scale: a fraction makes a short run; --tools of dsc,s5cmd,rclone,aws, each also with
// `, safe` (default: all that are here).
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DSC, findPrograms, runTimed, versionOf } from './harness/processes.mjs'
import { s3Dataset, startVersitygw, storeEnvironment, upload, writeSettings } from './harness/stores.mjs'
import { count, formatBytes, median, ratio, span, table } from './harness/tables.mjs'

const MIB = 2 ** 20
const SETS = {
  small: { objects: 20_000, bytes: 10 * 1024 },
  medium: { objects: 2000, bytes: MIB },
  large: { objects: 4, bytes: 1024 * MIB },
}
/** ext4 looks long for a free inode while many were deleted shortly before: small runs stay until their set is done. */
const MAX_KEPT_BYTES = 512 * MIB

export const benchmark = {
  page: 'stage.md',
  options: { rounds: 5, sets: 'small,medium,large', scale: 1, tools: '' },
  smoke: { rounds: 1, scale: 0.002 },
  async run(bench) {
    const programs = findPrograms('scripts/bench-peers.sh', 'scripts/s3-servers.sh versitygw')
    if (!programs.versitygw || !programs.s5cmd)
      return bench.leaveOut('tools', 'versitygw and s5cmd are built with Go')
    const { url } = await startVersitygw(bench, programs)
    const sets = bench.given.sets.split(',').map((name) => sizeOf(name, bench.given.scale))
    upload(bench, sets, { url, s5cmd: programs.s5cmd, pathOf: (index) => `${index % 100}/${index}.bin` })
    const wanted = bench.given.tools.split(/,(?! )/)
    const known = Object.entries(listTools(programs, url))
    const tools = known.filter(([name]) => bench.given.tools === '' || wanted.includes(name))
    bench.versions.push('versitygw', basename(programs.s5cmd).replace('-', ' '))
    if (programs.aws) bench.versions.push(versionOf(programs.aws, '--version'))
    if (programs.rclone) bench.versions.push(versionOf(programs.rclone, 'version'))
    const rows = sets.flatMap((set) => measureSet(bench, { set, tools, url, s5cmd: known[1][1] }))
    const heads = ['objects', 'tool', 'seconds', 'wall ÷ dsc', 'CPU seconds', 'peak MiB', 'objects/s', 'MB/s']
    bench.section('tools', table([...heads, 'verified GB per CPU second', 'safety'], rows, { texts: 2 }))
  },
}

function measureSet(bench, { set, tools, url, s5cmd }) {
  const { name, objects, bytes } = set
  const used = []
  measure(bench, { set, tool: s5cmd, url, used }) // the first reader finds the server's files on disk, not in memory
  const runs = new Map(tools.map(([tool]) => [tool, []]))
  for (let round = 0; round < bench.given.rounds; round++)
    for (const [tool, how] of tools) {
      const run = measure(bench, { set, tool: how, url, used })
      runs.get(tool).push(run)
      bench.progress(`${name} round ${round + 1} ${tool}: ${run.seconds.toFixed(2)} s`)
    }
  for (const run of used) rmSync(run, { recursive: true, force: true })
  const secondsOf = (tool) => median((runs.get(tool) ?? []).map(({ seconds }) => seconds))
  return tools.map(([tool, { does, verifies }]) => {
    const cpuSeconds = median(runs.get(tool).map((run) => run.cpuSeconds))
    const cells = [
      span(runs.get(tool).map((run) => run.seconds)),
      ratio(secondsOf(tool), secondsOf('dsc')),
      cpuSeconds.toFixed(2),
      median(runs.get(tool).map(({ rssMiB }) => rssMiB)).toFixed(0),
      (objects / secondsOf(tool)).toFixed(0),
      ((objects * bytes) / 1e6 / secondsOf(tool)).toFixed(1),
      verifies ? ((objects * bytes) / 1e9 / cpuSeconds).toFixed(2) : '-',
    ]
    return [`${count(objects)} × ${formatBytes(bytes)}`, tool, ...cells, does]
  })
}

/** One run into an empty folder, with the page cache written back before, so that no tool pays for another. */
function measure(bench, { set: { name, objects, bytes }, tool, url, used }) {
  const cwd = bench.makeFolder('run')
  const target = join(cwd, 'target')
  mkdirSync(target)
  writeSettings(cwd, { [name]: s3Dataset(url, `${name}/`) })
  spawnSync('sync')
  const run = runTimed(tool.words(name, target), { cwd, env: storeEnvironment() })
  const files = readdirSync(cwd, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.name.endsWith('.bin'),
  )
  const found = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
  if (files.length !== objects || found !== objects * bytes)
    throw new Error(`${tool.words(name, target)[0]} on ${name}: ${files.length} files, ${found} bytes`)
  if (objects * bytes > MAX_KEPT_BYTES) rmSync(cwd, { recursive: true, force: true })
  else used.push(cwd)
  return run
}

/** How each tool that is here copies `s3://bench/<set>/` of `url` into `target`, and what it does beyond copying. */
function listTools({ s5cmd, rclone, aws }, url) {
  const tools = {
    dsc: {
      words: (set) => [...DSC, 'prepare', set, '--task', 'bench'],
      ...{ does: 'verified, synced', verifies: true },
    },
    s5cmd: {
      words: (set, target) => [s5cmd, '--endpoint-url', url, 'cp', `s3://bench/${set}/*`, `${target}/`],
      does: 'neither',
    },
    rclone: rclone && {
      words: (set, target) => [
        ...[rclone, 'copy', `:s3:bench/${set}`, target, '--transfers', '64', '--checkers', '64'],
        ...['--s3-provider', 'Other', '--s3-env-auth', '--s3-endpoint', url, '--s3-force-path-style'],
      ],
      does: 'MD5 of single parts',
    },
    aws: aws && {
      words: (set, target) => [
        aws,
        '--endpoint-url',
        url,
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
  const here = Object.entries(tools).filter(([, tool]) => tool)
  return Object.fromEntries([
    ...here,
    ...here.slice(1).map(([name, tool]) => [`${name}, safe`, makeSafe(tool)]),
  ])
}

/**
 * A tool that does as much as dsc: what arrived is on the disk and was read once for a checksum, by the quickest
 * program that every system has (CRC-32 with carry-less multiplication) on two processors.
 */
function makeSafe({ words }) {
  const pass = 'sync -f "$0" && find "$0" -type f -print0 | xargs -0 -n 500 -P 2 cksum >/dev/null'
  return {
    words: (set, target) => ['sh', '-c', `"$@" && ${pass}`, target, ...words(set, target)],
    ...{ does: 'synced, CRC pass', verifies: true },
  }
}

function sizeOf(name, scale) {
  const { objects, bytes } = SETS[name]
  // Of the large set, the objects shrink instead of their number.
  if (name === 'large') return { name, objects, bytes: Math.max(MIB, Math.round(bytes * scale)) }
  return { name, objects: Math.max(1, Math.round(objects * scale)), bytes }
}
