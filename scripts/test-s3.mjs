// `npm run test:s3`: runs the tests that use an S3 server against real ones, versitygw and MinIO, in turn.
// Each server gets a folder and a port of its own and is stopped afterwards. Further arguments: test files, and
// servers by name, where not all are wanted.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { findFreePort } from '../dist/testing/free-port.js'

const ACCESS_KEY = 'dsc-test'
const SECRET_KEY = 'dsc-test-secret'
const START = {
  versitygw: (folder, port) => [
    '--access',
    ACCESS_KEY,
    '--secret',
    SECRET_KEY,
    '--port',
    `127.0.0.1:${port}`,
    'posix',
    folder,
  ],
  minio: (folder, port) => ['server', folder, '--address', `127.0.0.1:${port}`, '--quiet'],
}

const wanted = process.argv.slice(2).filter((word) => word in START)
const servers = execFileSync('scripts/s3-servers.sh', wanted.length === 1 ? wanted : [], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
})
  .trim()
  .split('\n')
  .filter(Boolean)
  .map((line) => line.split('='))
  .filter(([name]) => wanted.length === 0 || wanted.includes(name))
if (servers.length === 0) {
  process.stderr.write('test:s3: no S3 server could be built\n')
  process.exit(1)
}
const named = process.argv.slice(2).filter((word) => !(word in START))
const files =
  named.length > 0
    ? named
    : await thatUseServer(
        globSync([
          'dist/cache/{prepare,download,upkeep,leases,status}/*.test.js',
          'dist/sources/s3/*.test.js',
          'dist/e2e/!(cluster-*).test.js',
        ]),
      )
let failures = 0
for (const [name, path] of servers) {
  const folder = mkdtempSync(join(tmpdir(), `dsc-${name}-`))
  const data = join(folder, 'data')
  mkdirSync(data)
  const port = await findFreePort()
  const server = spawn(path, START[name](data, port), {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      MINIO_ROOT_USER: ACCESS_KEY,
      MINIO_ROOT_PASSWORD: SECRET_KEY,
      MINIO_BROWSER: 'off',
    },
  })
  let words = ''
  server.stderr.on('data', (chunk) => {
    words = (words + chunk).slice(-4000)
  })
  try {
    const endpoint = `http://127.0.0.1:${port}`
    await waitFor(endpoint, server, () => words)
    process.stdout.write(`test:s3: ${name} at ${endpoint}, ${files.length} files\n`)
    // One file at a time: the answer is about the server, not about two tests that share its disk.
    const options = ['--test-concurrency=1', '--test-reporter=spec']
    const run = spawnSync(process.execPath, ['--test', ...options, ...files], {
      stdio: 'inherit',
      env: {
        ...process.env,
        DSC_TEST_S3_ENDPOINT: endpoint,
        DSC_TEST_S3_ACCESS_KEY: ACCESS_KEY,
        DSC_TEST_S3_SECRET_KEY: SECRET_KEY,
      },
    })
    if (run.status !== 0) failures += 1
    process.stdout.write(`test:s3: ${name} ${run.status === 0 ? 'passes' : 'FAILS'}\n`)
  } finally {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}
process.exitCode = failures === 0 ? 0 : 1

/** Those of the test files that reach the module which starts the tests' S3 server: to the others all servers are one. */
async function thatUseServer(files) {
  const { metafile } = await build({
    entryPoints: files,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    outdir: 'unused',
    write: false,
    metafile: true,
    logLevel: 'error',
  })
  return Object.values(metafile.outputs)
    .filter(({ inputs }) => 'dist/testing/s3-server.js' in inputs)
    .map(({ entryPoint }) => entryPoint)
}

async function waitFor(endpoint, server, words) {
  for (let tries = 0; tries < 100; tries += 1) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}: ${words()}`)
    const answer = await fetch(endpoint).catch(() => undefined)
    if (answer && answer.status < 500) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`no answer from ${endpoint}: ${words()}`)
}
