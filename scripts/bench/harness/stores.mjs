// Stores and web servers on loopback, what is in them, and the dsc.yaml of a node that reads them.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setDefaultCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../../dist/testing/free-port.js'
import { startServer, startTalking } from './processes.mjs'

export const KEYS = {
  AWS_ACCESS_KEY_ID: 'bench',
  AWS_SECRET_ACCESS_KEY: 'bench-secret',
  AWS_REGION: 'us-east-1',
}

/** The variables that every tool finds the store's keys by, and nothing of the user's own. */
export function storeEnvironment(keys = KEYS) {
  const { AWS_CA_BUNDLE: _, AWS_PROFILE: __, ...inherited } = process.env
  return {
    ...{ ...inherited, ...keys, AWS_EC2_METADATA_DISABLED: 'true' },
    ...{ AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' },
  }
}

/** A dataset below `prefix` of the bucket `bench`, or of another one. */
export function s3Dataset(endpoint, prefix, bucket = 'bench') {
  return { source: `s3://${bucket}/${prefix}`, endpoint, region: 'us-east-1', pathStyle: true }
}

/** Writes a dsc.yaml with a record and a cache in `folder`; JSON is YAML. Returns its path. */
export function writeSettings(folder, datasets, { name = 'dsc.yaml', ...more } = {}) {
  const path = join(folder, name)
  const settings = {
    record: `sqlite://${folder}/record.db`,
    cache: { root: `${folder}/cache` },
    ...more,
    datasets,
  }
  writeFileSync(path, JSON.stringify(settings))
  return path
}

/**
 * A versitygw whose objects lie in `folder`, which keeps connections as S3 does; over TLS with `certificate`, from files
 * `certFile` and `keyFile`, which this process then trusts.
 */
export async function startVersitygw(
  bench,
  { versitygw },
  folder = bench.makeFolder('store'),
  certificate = undefined,
) {
  const tls = certificate ? ['--cert', certificate.certFile, '--key', certificate.keyFile] : []
  if (certificate) setDefaultCACertificates([readFileSync(certificate.certFile, 'utf8')])
  const port = await findFreePort()
  const keys = ['--access', KEYS.AWS_ACCESS_KEY_ID, '--secret', KEYS.AWS_SECRET_ACCESS_KEY]
  const words = [
    versitygw,
    '--keep-alive',
    '--quiet',
    ...keys,
    ...tls,
    '--port',
    `127.0.0.1:${port}`,
    'posix',
    folder,
  ]
  const { pid } = startServer(bench, words)
  return untilUp({ pid, url: `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`, folder })
}

/** nginx over the files of a folder, with these more lines of configuration. */
export async function startNginx(bench, root, { http = '', server = '' } = {}) {
  const port = await findFreePort()
  const own = bench.makeFolder('nginx')
  chmodSync(bench.folder, 0o755)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  )
  writeFileSync(
    join(own, 'nginx.conf'),
    `daemon off; user root; pid ${own}/pid; error_log ${own}/error.log; worker_processes ${availableParallelism()};
events { worker_connections 1024; }
http { ${temporary.join(' ')} access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
  open_file_cache max=10000; default_type application/octet-stream; ${http}
  server { listen 127.0.0.1:${port}; root ${root}; ${server} } }\n`,
  )
  const { pid } = startServer(bench, ['nginx', '-p', own, '-c', join(own, 'nginx.conf')])
  return untilUp({ pid, url: `http://127.0.0.1:${port}` })
}

/** Waits until a server answers, and returns it. */
export async function untilUp(server) {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await fetch(server.url).then(
      () => true,
      () => false,
    )
    if (isUp) return server
    await sleep(50)
  }
  throw new Error(`${server.url} does not answer`)
}

/** Puts objects `<set>/<path>` into the bucket `bench` through the protocol, so that the store knows their checksums. */
export function upload(bench, sets, { url, s5cmd, pathOf = (index) => `${index}.bin` }) {
  const from = bench.makeFolder('upload')
  for (const { name, objects, bytes } of sets) makeFiles(join(from, name), { objects, bytes, pathOf })
  const run = (...words) =>
    execFileSync(s5cmd, ['--endpoint-url', url, ...words], {
      env: storeEnvironment(),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  run('mb', 's3://bench')
  run('cp', `${from}/`, 's3://bench/')
  rmSync(from, { recursive: true })
}

/** Files of `bytes` each that differ in their first bytes; `fill` changes more of them. */
export function makeFiles(
  folder,
  { objects, bytes, pathOf, fill = (block, index) => block.writeUInt32LE(index) },
) {
  const block = Buffer.alloc(Math.max(bytes, 4))
  for (let index = 0; index < objects; index++) {
    fill(block, index)
    const path = join(folder, pathOf(index))
    if (index < 1000) mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, block)
  }
}

/** A store behind a link of its own (shaped-store.mjs), on an address of a network namespace if `enter` is given. */
export async function startShapedStore(
  bench,
  folder,
  { bytesPerSecond, delayMs, enter = [], address = '127.0.0.1' },
) {
  const script = fileURLToPath(new URL('shaped-store.mjs', import.meta.url))
  const words = [...enter, process.execPath, script, folder, bytesPerSecond, delayMs, address].map(String)
  const { child, line } = await startTalking(bench, words)
  const endpoint = `http://${address}:${line}`
  const readSent = async () => Number(await (await fetch(`${endpoint}/-/sent`)).text())
  return { child, endpoint, readSent }
}
