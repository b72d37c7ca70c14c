// `npm run bench:cluster -- --peers`: how fast a node takes a dataset from another node's agent, beside the store it
// came from and beside curl from nginx, which serve the same files over the same loopback, in turn.
// Options: --rounds 3 --large 2 (files of 1 GiB) --small 2000 (files of 100 KiB) --write (docs/benchmarks/peers.md)
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCluster } from '../../dist/testing/cluster.js'
import { DSC } from '../../dist/testing/dsc-processes.js'
import { findFreePort } from '../../dist/testing/free-port.js'
import { readOptions } from './read-options.mjs'
import { findPrograms } from './stage-tools.mjs'
import { startVersitygw, storeEnvironment, upload } from './versitygw.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    peers: { type: 'boolean' },
    rounds: { type: 'string', default: '3' },
    large: { type: 'string', default: '2' },
    small: { type: 'string', default: '2000' },
    write: { type: 'boolean', default: false },
  },
})
const MIB = 1024 * 1024
/** Runs leave less than this behind until the end: see `measure`. */
const MAX_KEPT_BYTES = 512 * MIB
const PAGE = 'docs/benchmarks/peers.md'
const rounds = Number(values.rounds)
const sets = [
  { name: 'large', objects: Number(values.large), bytes: 1024 * MIB, size: '1 GiB' },
  { name: 'small', objects: Number(values.small), bytes: 100 * 1024, size: '100 KiB' },
].filter(({ objects }) => objects > 0)
const ends = []
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
ends.unshift(() => rmSync(workspace, { recursive: true, force: true }))

try {
  const peers = findPrograms('scripts/bench-peers.sh')
  const store = await startVersitygw(workspace, peers)
  ends.unshift(store.stop)
  upload(sets, { workspace, endpoint: store.endpoint, s5cmd: peers.s5cmd })
  const datasets = Object.fromEntries(
    sets.map(({ name }) => [
      name,
      { source: `s3://bench/${name}/`, endpoint: store.endpoint, region: 'us-east-1', pathStyle: true },
    ]),
  )
  const nodes = ['donor', ...sets.flatMap(({ name }) => range(rounds).map((round) => `${name}-${round}`))]
  const cluster = await makeCluster(
    { after: (end) => ends.unshift(end) },
    { nodes, datasets, environment: storeEnvironment() },
  )
  const [donor, ...takers] = cluster.nodes
  const agent = await donor.startAgent()
  const results = []
  for (const set of sets) {
    const prepared = await donor.dsc('prepare', set.name, '--json', '--task', 'bench')
    if (prepared.code !== 0) throw new Error(prepared.stderr)
    const nginx = await startNginx(JSON.parse(prepared.stdout).path)
    for (const round of range(rounds)) {
      const taker = takers.find(({ name }) => name === `${set.name}-${round}`)
      const ways = {
        'dsc from the store': () => ({ sender: store.pid, ...dscFromStore(set, store) }),
        'dsc from a node': () => ({ sender: agent.process.pid, ...dscFromNode(set, taker) }),
        'curl from nginx': () => ({ sender: nginx.pid, ...curl(set, nginx) }),
        'curl from nginx, sync': () => ({ sender: nginx.pid, ...curl(set, nginx, 'sync -f .') }),
      }
      for (const [way, prepareRun] of Object.entries(ways)) {
        const result = measure(set, prepareRun())
        results.push({ set, way, ...result })
        process.stderr.write(`${set.name} round ${round + 1}, ${way}: ${result.seconds.toFixed(2)} s\n`)
      }
    }
    nginx.stop()
  }
  const text = format(results)
  process.stdout.write(text)
  if (values.write) writePage(text)
} finally {
  for (const end of ends) await end()
}

/** A new cache and a record of its own: nothing is known of the node that has it. */
function dscFromStore({ name }, { endpoint }) {
  const cwd = mkdtempSync(join(workspace, 'store-'))
  writeFileSync(
    join(cwd, 'dsc.yaml'),
    `record: sqlite://${cwd}/record.db\ncache: { root: ${cwd}/cache }\ndatasets:\n  ${name}: { source: 's3://bench/${name}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
  )
  return { cwd, waste: cwd, words: [...DSC, 'prepare', name, '--task', 'bench'] }
}

function dscFromNode({ name }, taker) {
  const words = [...DSC, 'prepare', name, '--json', '--task', 'bench', '--config', taker.configPath]
  const isFromNode = (output) => JSON.parse(output).downloaded.origins.storeBytes === 0
  return { cwd: workspace, waste: taker.root, words, accept: isFromNode }
}

/** All files by one curl over one connection. */
function curl({ name, objects }, { url }, then = 'true') {
  const cwd = mkdtempSync(join(workspace, 'curl-'))
  const lines = range(objects).map(
    (index) => `url = "${url}/${index % 100}/${index}.bin"\noutput = "${index}.bin"`,
  )
  writeFileSync(join(cwd, 'list'), lines.join('\n'))
  return { cwd, waste: cwd, name, words: ['sh', '-c', `curl -sf -K list && ${then}`] }
}

/**
 * Small files are left until the end: ext4 passes over inodes that were freed in the last five minutes one by one, so
 * that making a file takes 0.006 to 0.4 ms, by how many files of runs before were removed.
 */
function measure({ objects, bytes }, { sender, cwd, words, waste, accept = () => true }) {
  spawnSync('sync')
  const before = processorSeconds(sender)
  const start = performance.now()
  const { status, stdout, stderr } = spawnSync('/usr/bin/time', ['-f', 'used=%U %S', ...words], {
    cwd,
    env: storeEnvironment(),
    encoding: 'utf8',
  })
  const seconds = (performance.now() - start) / 1000
  if (status !== 0 || !accept(stdout)) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  const [, user, system] = /used=(\S+) (\S+)/.exec(stderr)
  if (objects * bytes > MAX_KEPT_BYTES) rmSync(waste, { recursive: true, force: true })
  return {
    seconds,
    received: Number(user) + Number(system),
    sent: processorSeconds(sender) - before,
  }
}

/** Of a process and its children. */
function processorSeconds(pid) {
  const [, , , , , , , , , , , , , user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  return (
    (Number(user) + Number(system)) / 100 + children.reduce((sum, child) => sum + processorSeconds(child), 0)
  )
}

async function startNginx(root) {
  const port = await findFreePort()
  const home = mkdtempSync(join(workspace, 'nginx-'))
  chmodSync(workspace, 0o755)
  mkdirSync(join(home, 'temporary'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    join(home, 'nginx.conf'),
    `daemon off; worker_processes auto; user root; pid ${home}/pid; error_log ${home}/error.log;
events {}
http {
  ${temporary.map((name) => `${name}_temp_path ${home}/temporary;`).join(' ')}
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; open_file_cache max=10000;
  server { listen 127.0.0.1:${port}; root ${root}; }
}
`,
  )
  const server = spawn('nginx', ['-p', home, '-c', join(home, 'nginx.conf')], { stdio: 'inherit' })
  const stop = () => server.kill()
  ends.unshift(stop)
  while (!existsSync(join(home, 'pid'))) await new Promise((resolve) => setTimeout(resolve, 20))
  return { pid: server.pid, url: `http://127.0.0.1:${port}`, stop }
}

function format(results) {
  const nginx = spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr.trim().replace(/^.*: /, '')
  const curlVersion = spawnSync('curl', ['--version'], { encoding: 'utf8' }).stdout.split(' (')[0]
  const text = [
    `${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)} at the end; node ${process.versions.node}, ${nginx}, ${curlVersion}, versitygw.`,
    `Sender and receiver share the processors and one disk. ${rounds} rounds, in turn: median (least–most).`,
    `Command: \`npm run bench:cluster -- --peers --rounds ${rounds} --large ${values.large} --small ${values.small} --write\`\n`,
    '| files | way | seconds | GB/s | processor s/GB, receiver | processor s/GB, sender |',
    '|---|---|--:|--:|--:|--:|',
  ]
  for (const set of sets) {
    const of = (way) => results.filter((result) => result.set === set && result.way === way)
    const gigabytes = (set.objects * set.bytes) / 1e9
    for (const way of new Set(results.map((result) => result.way))) {
      const seconds = of(way).map((result) => result.seconds)
      const shown = [
        `${median(seconds).toFixed(2)} (${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)})`,
        (gigabytes / median(seconds)).toFixed(2),
        (median(of(way).map(({ received }) => received)) / gigabytes).toFixed(2),
        (median(of(way).map(({ sent }) => sent)) / gigabytes).toFixed(2),
      ]
      text.push(`| ${set.objects.toLocaleString('en')} × ${set.size} | ${way} | ${shown.join(' | ')} |`)
    }
  }
  return `${text.join('\n')}\n`
}

/** Renews the published page and keeps what people made of its table. */
function writePage(text) {
  const old = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : ''
  const notes = old.includes('\n## ') ? old.slice(old.indexOf('\n## ')) : ''
  writeFileSync(PAGE, `# Between nodes\n\n${text}${notes}`)
}

function range(count) {
  return Array.from({ length: count }, (_, index) => index)
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
