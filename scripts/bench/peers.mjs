// How fast a node takes a dataset from another node's agent, beside the store it came from and beside curl from nginx,
// which serve the same files over the same loopback, in turn.
// --large: files of 1 GiB (with --bytes: of so many); --small: files of 100 KiB.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCluster } from '../../dist/testing/cluster.js'
import { cpuSecondsOf, DSC, findPrograms, runTimed, versionOf } from './harness/processes.mjs'
import {
  s3Dataset,
  startNginx,
  startVersitygw,
  storeEnvironment,
  upload,
  writeSettings,
} from './harness/stores.mjs'
import { count, formatBytes, median, span, table } from './harness/tables.mjs'

const MIB = 2 ** 20
/** By what dsc verified: a program for a checksum of the same kind; of CRCs the quickest that every system has. */
const SUMS = { 'etag-md5': 'md5sum', sha1: 'sha1sum', sha256: 'sha256sum', 'own-sha256': 'sha256sum' }
const pathOf = (index) => `${index % 100}/${index}.bin`
const range = (size) => Array.from({ length: size }, (_, index) => index)

export const benchmark = {
  page: 'peers.md',
  options: { rounds: 3, large: 1, bytes: 1024 * MIB, small: 5000 },
  smoke: { rounds: 1, large: 1, bytes: MIB, small: 20 },
  async run(bench) {
    const programs = findPrograms('scripts/bench-peers.sh', 'scripts/s3-servers.sh versitygw')
    if (!programs.versitygw || !programs.s5cmd || spawnSync('nginx', ['-v']).error)
      return bench.leaveOut('ways', 'it needs nginx, and versitygw and s5cmd, which are built with Go')
    const { rounds, large, small, bytes } = bench.given
    const sets = [
      { name: 'large', objects: large, bytes },
      { name: 'small', objects: small, bytes: 100 * 1024 },
    ].filter(({ objects }) => objects > 0)
    const store = await startVersitygw(bench, programs)
    upload(bench, sets, { url: store.url, s5cmd: programs.s5cmd, pathOf })
    const cluster = await makeCluster(bench, {
      nodes: ['donor', ...sets.flatMap(({ name }) => range(rounds).map((round) => `${name}-${round}`))],
      datasets: Object.fromEntries(sets.map(({ name }) => [name, s3Dataset(store.url, `${name}/`)])),
      environment: storeEnvironment(),
    })
    bench.versions.push(
      versionOf('nginx', '-v').replace(/^.*: /, ''),
      versionOf('curl', '--version'),
      'versitygw',
    )
    const agent = await cluster.nodes[0].startAgent()
    const rows = []
    for (const set of sets) rows.push(...(await measureSet(bench, { set, cluster, agent, store })))
    const heads = ['files', 'way', 'safety', 'seconds', 'processor s/GB, receiver', 'sender']
    bench.section('ways', table([...heads, 'verified GB per processor second of both'], rows, { texts: 3 }))
  },
}

async function measureSet(bench, { set, cluster, agent, store }) {
  const [donor, ...takers] = cluster.nodes
  const prepared = await donor.dsc('prepare', set.name, '--json', '--task', 'bench')
  if (prepared.code !== 0) throw new Error(prepared.stderr)
  const { path } = JSON.parse(prepared.stdout)
  // What the donor wrote past the page cache would be read from the disk for the first way only.
  spawnSync('find', [path, '-type', 'f', '-exec', 'cat', '{}', '+'], { stdio: 'ignore' })
  const nginx = await startNginx(bench, path)
  const results = []
  for (const round of range(bench.given.rounds)) {
    const taker = takers.find(({ name }) => name === `${set.name}-${round}`)
    let sum
    const ways = {
      'dsc from the store': () => ({ sender: store.pid, ...dscFromStore(bench, set, store) }),
      'dsc from a node': () => ({ sender: agent.process.pid, ...dscFromNode(bench, set, taker) }),
      'curl from nginx': () => ({ sender: nginx.pid, ...curl(bench, set, nginx) }),
      'curl from nginx, safe': () => ({ sender: nginx.pid, ...curl(bench, set, nginx, sum) }),
    }
    for (const [way, planRun] of Object.entries(ways)) {
      const run = planRun()
      const { stdout, ...result } = measure(set, run)
      if (way === 'dsc from a node') sum = findSum(stdout)
      results.push({ way, does: run.does, ...result })
      bench.progress(`${set.name} round ${round + 1}, ${way}: ${result.seconds.toFixed(2)} s`)
    }
  }
  return [...Map.groupBy(results, ({ way }) => way)].map(([way, runs]) => describe(set, way, runs))
}

/** A row: medians of the runs of one way. */
function describe({ objects, bytes }, way, runs) {
  const gigabytes = (objects * bytes) / 1e9
  const of = (name) => runs.map((run) => run[name])
  const [received, sent] = ['received', 'sent'].map((name) => median(of(name)) / gigabytes)
  const does = runs[0].does
  return [
    ...[`${count(objects)} × ${formatBytes(bytes)}`, way, does, span(of('seconds'))],
    ...[received.toFixed(2), sent.toFixed(2), does === 'neither' ? '-' : (1 / (received + sent)).toFixed(2)],
  ]
}

/** The program for a checksum of the kind by which dsc verified most files. Throws unless all came from the node. */
function findSum(stdout) {
  const { origins, verifiedBy } = JSON.parse(stdout).downloaded
  if (origins.storeBytes > 0) throw new Error(`dsc did not read everything from the node: ${stdout}`)
  const [[kind]] = Object.entries(verifiedBy).sort(([, a], [, b]) => b - a)
  return SUMS[kind] ?? 'cksum'
}

/** A new cache and a record of its own: nothing is known of the node that has it. */
function dscFromStore(bench, { name }, { url }) {
  const cwd = bench.makeFolder('store')
  writeSettings(cwd, { [name]: s3Dataset(url, `${name}/`) })
  const words = [...DSC, 'prepare', name, '--task', 'bench']
  return { does: 'verified, synced', cwd, waste: cwd, words }
}

function dscFromNode(bench, { name }, taker) {
  const words = [...DSC, 'prepare', name, '--json', '--task', 'bench', '--config', taker.configPath]
  return { does: 'verified, synced', cwd: bench.folder, waste: taker.root, words }
}

/** All files by one curl over one connection; with `sum` on the disk, and read once by that program. */
function curl(bench, { objects }, { url }, sum) {
  const cwd = bench.makeFolder('curl')
  const lines = range(objects).map((index) => `url = "${url}/${pathOf(index)}"\noutput = "${index}.bin"`)
  writeFileSync(join(cwd, 'list'), lines.join('\n'))
  const safe = `sync -f . && find . -name "*.bin" -print0 | xargs -0 -n 500 -P 2 ${sum} >sums`
  const words = ['sh', '-c', `curl -sf -K list ${sum ? `&& ${safe}` : ''}`]
  return { does: sum ? `synced, ${sum}` : 'neither', cwd, waste: cwd, words }
}

/**
 * Small files are left until the end: ext4 passes over inodes that were freed in the last five minutes one by one, so
 * that making a file takes 0.006 to 0.4 ms, by how many files of runs before were removed.
 */
function measure({ bytes }, { sender, cwd, words, waste }) {
  spawnSync('sync')
  const before = cpuSecondsOf(sender)
  const { seconds, cpuSeconds: received, stdout } = runTimed(words, { cwd, env: storeEnvironment() })
  if (bytes >= MIB) rmSync(waste, { recursive: true, force: true })
  return { seconds, received, sent: cpuSecondsOf(sender) - before, stdout }
}
