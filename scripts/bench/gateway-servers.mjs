// The servers that gateway.mjs compares, over one folder that versitygw was given through the protocol; dsc over the
// ready copies that it staged from there.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../dist/testing/free-port.js'

const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const KEYS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' }
/** Paths that wrk asks for, of a set with more objects. */
const MAX_PATHS = 2000

/** Starts all; `onStarted` gets what ends each. */
export async function startServers({ tools, workspace, sets, onStarted }) {
  const folder = join(workspace, 'objects')
  mkdirSync(folder)
  const context = { tools, workspace, folder, onStarted }
  const versitygw = await startVersitygw(context)
  upload({ ...context, sets, endpoint: versitygw.url })
  const presigned = (keys, url) => (set) => presign(tools.s5cmd, { keys, url, set })
  const servers = [
    { ...versitygw, name: 'versitygw', isS3: true, keys: KEYS, pathsOf: presigned(KEYS, versitygw.url) },
    ...(await startDsc({ ...context, sets, endpoint: versitygw.url, presigned })),
    { ...(await startNginx(context)), name: 'nginx', pathsOf: async (set) => plainPaths(set) },
  ]
  if (tools.rclone)
    servers.push({
      ...(await startRclone(context)),
      name: 'rclone',
      isS3: true,
      keys: KEYS,
      pathsOf: async (set) => plainPaths(set),
    })
  return servers
}

function start(onStarted, program, words, options = {}) {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit'], ...options })
  onStarted(async () => {
    if (child.exitCode !== null) return
    child.kill()
    await once(child, 'exit')
  })
  return child
}

async function startVersitygw({ tools, folder, onStarted }) {
  const port = await findFreePort()
  const words = [
    '--keep-alive',
    '--quiet',
    '--access',
    KEYS.AWS_ACCESS_KEY_ID,
    '--secret',
    KEYS.AWS_SECRET_ACCESS_KEY,
  ]
  const { pid } = start(onStarted, tools.versitygw, [
    ...words,
    '--port',
    `127.0.0.1:${port}`,
    'posix',
    folder,
  ])
  return untilUp({ pid, url: `http://127.0.0.1:${port}` })
}

async function startRclone({ tools, folder, onStarted }) {
  const port = await findFreePort()
  const { pid } = start(onStarted, tools.rclone, [
    'serve',
    's3',
    '--addr',
    `127.0.0.1:${port}`,
    '--config',
    '/dev/null',
    '--log-level',
    'ERROR',
    '--vfs-cache-mode',
    'off',
    folder,
  ])
  return untilUp({ pid, url: `http://127.0.0.1:${port}` })
}

async function startNginx({ tools, workspace, folder, onStarted }) {
  const port = await findFreePort()
  const own = join(workspace, 'nginx')
  mkdirSync(own)
  writeFileSync(
    join(own, 'nginx.conf'),
    `daemon off; user root; pid ${own}/pid; error_log ${own}/error.log; worker_processes ${availableParallelism()};
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/octet-stream;
  server { listen 127.0.0.1:${port}; root ${folder}; } }\n`,
  )
  const { pid } = start(onStarted, tools.nginx, ['-p', own, '-c', join(own, 'nginx.conf')])
  return untilUp({ pid, url: `http://127.0.0.1:${port}` })
}

/** Two gateways: for users of this machine, whose requests need no key, and one that checks every signature. */
async function startDsc({ workspace, sets, endpoint, onStarted, presigned }) {
  const own = join(workspace, 'dsc')
  mkdirSync(own)
  const datasets = sets.map(
    ({ name }) =>
      `  ${name}: { source: 's3://bench/${name}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
  )
  const configure = (name, agent) => {
    const path = join(own, `${name}.yaml`)
    writeFileSync(
      path,
      `record: sqlite://${own}/record.db\ncache: { root: ${own}/cache }\n${agent}datasets:\n${datasets.join('')}`,
    )
    return path
  }
  writeFileSync(join(own, 'token'), 'a token of this benchmark alone', { mode: 0o600 })
  const gateway = `gateway: { listen: '127.0.0.1:0', users`
  const local = configure('local', `agent: { listen: '127.0.0.1:0', ${gateway}: all } }\n`)
  const signed = configure(
    'signed',
    `agent: { listen: '127.0.0.1:0', tokenFile: token, ${gateway}: [54321] } }\n`,
  )
  const env = { ...process.env, ...KEYS }
  const dsc = (config, ...words) =>
    execFileSync(process.execPath, [DSC, '--config', config, ...words], { cwd: own, env, encoding: 'utf8' })
  for (const { name } of sets) dsc(local, 'prepare', name, '--task', 'bench')
  const key = JSON.parse(dsc(signed, 'gateway', 'key', 'bench', '--json'))
  const keys = { ...KEYS, AWS_ACCESS_KEY_ID: key.accessKeyId, AWS_SECRET_ACCESS_KEY: key.secretAccessKey }
  const open = async (config) => {
    const words = [
      ...(process.env.DSC_BENCH_NODE_OPTIONS ?? '').split(' ').filter(Boolean),
      DSC,
      '--config',
      config,
      'agent',
      '--json',
    ]
    const child = start(onStarted, process.execPath, words, {
      cwd: own,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    return { pid: child.pid, url: JSON.parse(line).gateway }
  }
  const [forUsers, forKeys] = [await open(local), await open(signed)]
  return [
    {
      ...forUsers,
      name: 'dsc',
      isS3: true,
      keys,
      pathsOf: async (set) => plainPaths(set),
    },
    { ...forKeys, name: 'dsc, signed', isS3: true, keys, pathsOf: presigned(keys, forKeys.url) },
  ]
}

/** Puts the objects there through the protocol, so that versitygw knows their etags. */
function upload({ tools, workspace, sets, endpoint }) {
  const from = join(workspace, 'upload')
  for (const { name, objects, bytes } of sets) {
    mkdirSync(join(from, name), { recursive: true })
    const block = Buffer.alloc(bytes)
    for (let index = 0; index < objects; index++) {
      block.writeUInt32LE(index)
      writeFileSync(join(from, name, `${index}.bin`), block)
    }
  }
  const s5cmd = (...words) =>
    execFileSync(tools.s5cmd, ['--endpoint-url', endpoint, ...words], {
      env: { ...process.env, ...KEYS },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  s5cmd('mb', 's3://bench')
  s5cmd('cp', `${from}/`, 's3://bench/')
  rmSync(from, { recursive: true })
}

function plainPaths({ name, objects }) {
  return Array.from({ length: Math.min(objects, MAX_PATHS) }, (_, index) => `/bench/${name}/${index}.bin`)
}

/** The same paths with signatures in their queries, for a client that cannot sign. */
function presign(s5cmd, { keys, url, set }) {
  const input = plainPaths(set)
    .map((path) => `presign --expire 6h s3:/${path}\n`)
    .join('')
  const printed = execFileSync(s5cmd, ['--endpoint-url', url, 'run'], {
    input,
    env: { ...process.env, ...keys },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  return printed
    .trim()
    .split('\n')
    .map((line) => line.slice(url.length))
}

async function untilUp(server) {
  for (let tries = 0; tries < 200; tries++) {
    if (
      await fetch(server.url).then(
        () => true,
        () => false,
      )
    )
      return server
    await sleep(50)
  }
  throw new Error(`${server.url} does not answer`)
}
