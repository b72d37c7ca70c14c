// The five-minute tour as a program: starts an S3 server, fills it with a real dataset, and runs dsc on it. Every
// dsc command is printed before it runs, so that a newcomer learns the tool by watching. With --keep the server and the
// cache stay afterwards, for playing.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIGITS = join(ROOT, 'fixtures/datasets/digits')
const KEYS = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
const isKept = process.argv.includes('--keep')
const isColored = process.stdout.isTTY && process.env.NO_COLOR === undefined

say(
  'An S3 server starts and gets the UCI handwritten digits: 1,797 PNG files in ten class folders. This takes about 10 seconds.',
)
const workspace = mkdtempSync(join(tmpdir(), 'dsc-quickstart-'))
const { server, endpoint } = await startS3Server()
let isLeft = false
if (isKept) for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end)
try {
  await fill(endpoint)
  writeFileSync(
    join(workspace, 'dsc.yaml'),
    `record: sqlite://${workspace}/record.db
node: this-machine
cache:
  root: ${workspace}/cache
  maxDatasets: 2        # room for two, so that the third has to push one out
`,
  )
  say(
    `A dsc.yaml gives the cache room for two datasets:\n\n${indent(readFileSync(join(workspace, 'dsc.yaml'), 'utf8'))}`,
  )

  say('Name the datasets. The same bucket can hold many; filters choose.')
  dsc('dataset', 'add', 'digits', 's3://quickstart/digits/', ...reach())
  dsc('dataset', 'add', 'even', 's3://quickstart/digits/', ...reach(), '--include', '{0,2,4,6,8}/*.png')
  dsc('dataset', 'add', 'labels', 's3://quickstart/digits/', ...reach(), '--include', 'labels.csv')

  say('A job asks for its dataset and gets a path. The copy is leased to the job, so that nothing evicts it.')
  const path = dsc('prepare', 'digits', '--task', 'train-1').trim()
  const classes = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  say(`${classes.length} class folders lie there. Asking again takes no time: the copy is ready.`)
  dsc('prepare', 'digits', '--task', 'train-2')

  say('A second dataset, whose job ends. Its lease ends too, so the copy is idle.')
  dsc('run', 'even', '--', 'sh', '-c', 'ls "$DSC_DATASET" | tr "\\n" " "; echo')

  say('A third one: the policy allows two. What would happen?')
  dsc('prepare', 'labels', '--task', 'eval', '--plan')
  say('The idle copy goes, the leased one stays.')
  dsc('prepare', 'labels', '--task', 'eval')

  say('Now both places are leased. The next request is refused, with its numbers, and nothing is deleted.')
  dscFails(5, 'prepare', 'even', '--task', 'train-3')
  dsc('status')
  dsc('why', 'even')

  say('The jobs end. Their leases are released, and cron would run the cleanup.')
  dsc('release', 'digits', '--task', 'train-1')
  dsc('release', 'digits', '--task', 'train-2')
  dsc('release', '--all', '--task', 'eval')
  dsc('verify')
  dsc('evict', 'labels', '--yes', '--no-undo') // its files go at once
  dsc('cleanup')
  dsc('status')
  say('That was dsc. Next: dsc init writes a dsc.yaml for this machine; see docs/start/node.md.')
  if (!isKept) say('Deleting the files of the server and the cache takes a few seconds.')
  if (isKept) leaveForPlaying()
  isLeft = isKept
} finally {
  if (!isLeft) end()
}

function end(signal) {
  server.kill()
  rmSync(workspace, { recursive: true, force: true })
  if (signal) process.exit(1)
}

/** Writes what a shell needs to go on with the server and the cache, and how to end them. */
function leaveForPlaying() {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`
  mkdirSync(join(workspace, 'bin'))
  writeFileSync(
    join(workspace, 'bin/dsc'),
    `#!/bin/sh\nexec ${quote(process.execPath)} ${quote(join(ROOT, 'bin/dsc.js'))} "$@"\n`,
    { mode: 0o755 },
  )
  const variables = { ...environment(), PATH: `${join(workspace, 'bin')}:` }
  writeFileSync(
    join(workspace, 'env.sh'),
    Object.entries(variables)
      .map(([name, value]) => `export ${name}=${quote(value)}${name === 'PATH' ? '"$PATH"' : ''}\n`)
      .join(''),
  )
  writeFileSync(join(workspace, 'stop.sh'), `kill ${server.pid}\nrm -rf ${quote(workspace)}\n`)
  say(
    `Kept: the server at ${endpoint} and the cache.\n\n${indent(
      `. ${workspace}/env.sh       # then: dsc prepare digits, dsc status, …\nsh ${workspace}/stop.sh     # ends the server and deletes all of it`,
    )}`,
  )
}

/** What dsc finds in its environment. */
function environment() {
  return {
    DSC_CONFIG: join(workspace, 'dsc.yaml'),
    AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    AWS_REGION: 'us-east-1',
  }
}

/** Runs s3rver on a free port. */
async function startS3Server() {
  const script = `
    const S3rver = require('@20minutes/s3rver')
    const server = new S3rver({ port: 0, address: '127.0.0.1', silent: true, allowMismatchedSignatures: true, directory: process.argv[1] })
    server.run().then(({ port }) => console.log(port))
    if (process.argv[2] !== 'keep') process.stdin.resume().on('end', () => process.exit())`
  // s3rver encrypts the tokens of its listings with DES, which OpenSSL 3 has only as legacy.
  const child = spawn(
    process.execPath,
    ['--openssl-legacy-provider', '-e', script, join(workspace, 's3'), isKept ? 'keep' : ''],
    {
      cwd: ROOT,
      detached: isKept, // Ctrl-C during the tour is for the tour; the server of a kept one is ended by stop.sh
      stdio: [isKept ? 'ignore' : 'pipe', 'pipe', isKept ? 'ignore' : 'inherit'],
    },
  )
  const [port] = await once(child.stdout, 'data')
  child.stdout.destroy()
  child.unref()
  return { server: child, endpoint: `http://127.0.0.1:${String(port).trim()}` }
}

async function fill(url) {
  const client = new S3Client({
    endpoint: url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: KEYS,
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })
  await client.send(new CreateBucketCommand({ Bucket: 'quickstart' }))
  const files = readdirSync(DIGITS, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const next = files.values()
  const upload = async () => {
    for (const file of next) {
      const path = join(file.parentPath, file.name)
      const Key = `digits/${relative(DIGITS, path)}`
      await client.send(new PutObjectCommand({ Bucket: 'quickstart', Key, Body: readFileSync(path) }))
    }
  }
  await Promise.all(Array.from({ length: 16 }, upload))
  client.destroy()
}

function reach() {
  return ['--endpoint', endpoint, '--path-style']
}

/** Prints and runs one dsc command in the workspace; returns its stdout. Stops the tour if it fails. */
function dsc(...words) {
  return dscFails(0, ...words)
}

/** The same for a command that is to end with `exitCode`. */
function dscFails(exitCode, ...words) {
  const shown = words.map((word) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`,
  )
  process.stdout.write(`\n${paint('1;36', `$ dsc ${shown.join(' ')}`)}\n`)
  const { status, stdout } = spawnSync(process.execPath, [join(ROOT, 'bin/dsc.js'), ...words], {
    cwd: workspace,
    encoding: 'utf8',
    stdio: ['inherit', 'pipe', 'inherit'],
    env: { ...process.env, ...environment() },
  })
  process.stdout.write(stdout)
  if (status !== exitCode) {
    process.stderr.write(`\nquickstart: expected exit code ${exitCode}, found ${status}\n`)
    process.exitCode = 1
    throw new Error(`dsc ${words[0]} ended with ${status}`)
  }
  if (exitCode !== 0) process.stdout.write(paint('2', `(exit code ${status})\n`))
  return stdout
}

function say(text) {
  process.stdout.write(`\n${paint('2', '#')} ${text}\n`)
}

function indent(text) {
  return text.trimEnd().replaceAll(/^/gm, '    ')
}

function paint(code, text) {
  return isColored ? `\x1b[${code}m${text}\x1b[0m` : text
}
