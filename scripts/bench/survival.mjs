// What readers notice when the program that caches their data fails. 50 readers of one dataset, half of which keep one
// file open as a job with shards does, while the cache is killed, runs out of memory, is restarted, finds its disk
// full, or loses its record or its store. Beside dsc, whose readers read files: rclone mount and s3fs, which serve them
// through FUSE. Each is supervised as systemd would: started again 100 ms after it ends, its mount taken down before.
// Needs root, /dev/fuse, rclone, s3fs and memory cgroups.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../dist/testing/free-port.js'
import { DSC, findPrograms, runTimed, versionOf } from './harness/processes.mjs'
import {
  KEYS,
  s3Dataset,
  startVersitygw,
  storeEnvironment,
  untilUp,
  upload,
  writeSettings,
} from './harness/stores.mjs'
import { table } from './harness/tables.mjs'

const MIB = 2 ** 20
const READERS = fileURLToPath(new URL('survival/readers.py', import.meta.url))
/** systemd's RestartSec. */
const RESTART_MS = 100
const DISK_MIB = 1024

export const benchmark = {
  page: 'survival.md',
  options: { objects: 1000, kib: 256, readers: 50, seconds: 20 },
  smoke: { objects: 20, kib: 16, readers: 4, seconds: 3 },
  async run(bench) {
    const { objects, kib } = bench.given
    const programs = findPrograms('scripts/s3-servers.sh versitygw', 'scripts/bench-peers.sh s5cmd')
    const caches = findCaches(bench)
    const cells = new Map(Object.keys(FAULTS).map((fault) => [fault, []]))
    for (const [name, start] of Object.entries(caches))
      for (const [fault, inflict] of Object.entries(FAULTS)) {
        const store = await startVersitygw(bench, programs)
        upload(bench, [{ name: 'data', objects, bytes: kib * 1024 }], {
          url: store.url,
          s5cmd: programs.s5cmd,
        })
        bench.progress(`${name}: ${fault}`)
        const disk = mountDisk(bench)
        const cache = await start({ bench, store, disk })
        const found = await watch(bench, cache, () => inflict({ cache, store, disk }))
        cells.get(fault).push([found.failed, found.longest.toFixed(1), found.broken].join('/'))
        await cache.stop()
        spawnSync('umount', ['-l', disk])
        endStore({ store })
      }
    const rows = [...cells].map(([fault, found]) => [fault, ...found])
    bench.section('readers', table(['fault', ...Object.keys(caches)], rows))
  },
}

/** The caches that this machine has. */
function findCaches(bench) {
  const caches = { dsc: startDsc }
  for (const [name, start] of Object.entries({ 'rclone mount': startRclone, s3fs: startS3fs })) {
    const program = name.split(' ')[0]
    if (spawnSync('which', [program]).status !== 0) bench.leaveOut(name, `${program} is not installed`)
    else {
      caches[name] = start
      bench.versions.push(versionOf(program, '--version').replace(/^Amazon.*?V(\S+).*/, 's3fs $1'))
    }
  }
  return caches
}

/** A file system of its own for a cache, so that it can be full. */
function mountDisk(bench) {
  const disk = bench.makeFolder('disk')
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', disk])
  bench.after(() => spawnSync('umount', ['-l', disk]))
  return disk
}

async function startDsc({ bench, store, disk }) {
  const folder = bench.makeFolder('dsc')
  const port = await findFreePort()
  const record = join(disk, 'record.db')
  const settings = { record: `sqlite://${record}`, cache: { root: join(disk, 'cache') } }
  writeSettings(
    folder,
    { data: s3Dataset(store.url, 'data/') },
    { ...settings, agent: { listen: `127.0.0.1:${port}` } },
  )
  const options = { cwd: folder, env: storeEnvironment() }
  const { stdout } = runTimed([...DSC, 'prepare', 'data', '--task', 'bench', '--quiet'], options)
  const supervised = supervise(bench, [...DSC, 'agent'], options)
  await untilUp({ url: `http://127.0.0.1:${port}/healthz` })
  const forgetRecord = () => {
    for (const end of ['', '-wal', '-shm']) rmSync(record + end, { force: true })
  }
  return { folder: stdout.trim(), forgetRecord, ...supervised }
}

async function startRclone({ bench, store, disk }) {
  const remote = `:s3,provider=Other,endpoint="${store.url}",access_key_id=${KEYS.AWS_ACCESS_KEY_ID},secret_access_key=${KEYS.AWS_SECRET_ACCESS_KEY}:bench/data`
  const mount = bench.makeFolder('mount')
  const cache = join(disk, 'rclone')
  const words = [
    'rclone',
    'mount',
    remote,
    mount,
    '--read-only',
    '--vfs-cache-mode',
    'full',
    '--cache-dir',
    cache,
  ]
  return startMount(bench, {
    mount,
    words,
    forgetRecord: () => removeTree(join(cache, 'vfsMeta')),
  })
}

async function startS3fs({ bench, store, disk }) {
  const mount = bench.makeFolder('mount')
  const password = join(bench.makeFolder('keys'), 'passwd')
  writeFileSync(password, `${KEYS.AWS_ACCESS_KEY_ID}:${KEYS.AWS_SECRET_ACCESS_KEY}\n`, { mode: 0o600 })
  const cache = join(disk, 's3fs')
  const options = `url=${store.url},use_path_request_style,passwd_file=${password},use_cache=${cache},ro`
  const words = ['s3fs', '-f', 'bench:/data', mount, '-o', options]
  return startMount(bench, {
    mount,
    words,
    forgetRecord: () => removeTree(join(cache, '.bench.stat')),
  })
}

async function startMount(bench, { mount, words, forgetRecord }) {
  const unmount = () => spawnSync('umount', ['-l', mount])
  bench.after(unmount)
  const supervised = supervise(bench, words, { env: storeEnvironment() }, unmount)
  for (let tries = 0; readdirSync(mount).length === 0; tries++) {
    if (tries === 100) throw new Error(`${words.join(' ')} mounts nothing`)
    await sleep(100)
  }
  return { folder: mount, forgetRecord, ...supervised }
}

/** Runs a program in a memory cgroup of its own, and starts it again when it ends. */
function supervise(bench, words, options, beforeRestart = () => {}) {
  const group = makeGroup(bench)
  let child
  let isWanted = true
  let ends = 0
  const start = () => {
    child = spawn(
      'sh',
      ['-c', `echo $$ >${group.tasks}; echo 1000 >/proc/self/oom_score_adj; exec "$@"`, 'sh', ...words],
      {
        stdio: 'ignore',
        ...options,
      },
    )
    child.once('exit', async () => {
      ends += 1
      if (!isWanted) return
      beforeRestart()
      await sleep(RESTART_MS)
      group.loosen()
      if (isWanted) start()
    })
  }
  start()
  const stop = async () => {
    if (!isWanted) return
    isWanted = false
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    beforeRestart()
  }
  bench.after(stop)
  return { kill: (signal) => child.kill(signal), hasEnded: () => ends > 0, squeeze: group.squeeze, stop }
}

function makeGroup(bench) {
  const name = `dsc-bench-${process.pid}-${Math.random().toString(36).slice(2)}`
  const isSecond = existsSync('/sys/fs/cgroup/cgroup.controllers')
  const folder = isSecond ? `/sys/fs/cgroup/${name}` : `/sys/fs/cgroup/memory/${name}`
  mkdirSync(folder)
  bench.after(() => spawnSync('rmdir', [folder]))
  const tasks = join(folder, 'cgroup.procs')
  const limit = join(folder, isSecond ? 'memory.max' : 'memory.limit_in_bytes')
  const usage = join(folder, isSecond ? 'memory.current' : 'memory.usage_in_bytes')
  // A neighbour in the same container takes more than is left; the kernel ends the cache first (oom_score_adj).
  const hog = `echo $$ >${tasks}; exec python3 -c 'b"x" * (256 << 20)'`
  const squeeze = () => {
    writeFileSync(limit, String(Number(readFileSync(usage, 'utf8')) + 16 * MIB))
    spawn('sh', ['-c', hog], { stdio: 'ignore' })
  }
  return { tasks, squeeze, loosen: () => writeFileSync(limit, isSecond ? 'max' : '-1') }
}

function endStore({ store }) {
  spawnSync('kill', ['-9', String(store.pid)]) // it may have ended
}

/** Removes a folder in which a program may write meanwhile. */
function removeTree(folder) {
  spawnSync('rm', ['-rf', folder])
}

const FAULTS = {
  killed: ({ cache }) => cache.kill('SIGKILL'),
  'out of memory': async ({ cache }) => {
    cache.squeeze()
    for (let tries = 0; !cache.hasEnded(); tries++) {
      if (tries === 100) throw new Error('the kernel did not end a process without memory')
      await sleep(50)
    }
  },
  restarted: ({ cache }) => cache.kill('SIGTERM'),
  'disk full': ({ disk }) => {
    const { bavail, bsize } = statfsSync(disk)
    spawnSync('dd', [
      'if=/dev/zero',
      `of=${disk}/filler`,
      'bs=1M',
      `count=${Math.ceil((bavail * bsize) / MIB) + 1}`,
    ])
  },
  'record gone': ({ cache }) => cache.forgetRecord(),
  'store gone': endStore,
}

/** Lets readers read, inflicts the fault after a fifth of the time, and returns what they noticed. */
async function watch(bench, cache, inflict) {
  const { readers, seconds } = bench.given
  const child = spawn('python3', [READERS, cache.folder, String(readers), String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  bench.after(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await lines.next() // all of them have read something
  await sleep((seconds * 1000) / 5)
  await inflict()
  const { value } = await lines.next() // the process itself may hang in a dead mount until that is gone
  return JSON.parse(value)
}
