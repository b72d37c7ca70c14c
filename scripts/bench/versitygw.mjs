// A versitygw on loopback with objects that were put there through the protocol, for stage.mjs and peers.mjs.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../../dist/testing/free-port.js'
import { findPrograms } from './stage-tools.mjs'

const KEYS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' }

/** Starts it with its data in `workspace`; `peers` are the tools of `findPrograms`. */
export async function startVersitygw(workspace, peers) {
  const { versitygw } = findPrograms('scripts/s3-servers.sh')
  if (!versitygw || !peers.s5cmd) throw new Error('this needs versitygw and s5cmd, both built with Go')
  const port = await findFreePort()
  const endpoint = `http://127.0.0.1:${port}`
  const data = join(workspace, 'server')
  mkdirSync(data)
  const server = spawn(
    versitygw,
    [
      '--keep-alive', // as S3 does
      ...['--access', KEYS.AWS_ACCESS_KEY_ID, '--secret', KEYS.AWS_SECRET_ACCESS_KEY],
      ...['--port', `127.0.0.1:${port}`, 'posix', data],
    ],
    { stdio: 'ignore' },
  )
  await untilUp(endpoint)
  return { endpoint, pid: server.pid, stop: () => server.kill() }
}

/** Puts `objects` objects of `bytes` bytes each under `<name>/` of the bucket `bench`, for each of `sets`. */
export function upload(sets, { workspace, endpoint, s5cmd }) {
  for (const { name, objects, bytes } of sets) {
    const folder = join(workspace, 'upload', name)
    mkdirSync(folder, { recursive: true })
    const block = Buffer.alloc(bytes)
    for (let index = 0; index < objects; index++) {
      block.writeUInt32LE(index)
      mkdirSync(join(folder, `${index % 100}`), { recursive: true })
      writeFileSync(join(folder, `${index % 100}`, `${index}.bin`), block)
    }
  }
  const run = (...words) =>
    execFileSync(s5cmd, ['--endpoint-url', endpoint, ...words], {
      env: storeEnvironment(),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  run('mb', 's3://bench')
  run('cp', `${join(workspace, 'upload')}/`, 's3://bench/')
  rmSync(join(workspace, 'upload'), { recursive: true })
}

/** The variables that every tool finds the store's keys by. */
export function storeEnvironment() {
  const { AWS_CA_BUNDLE: _, AWS_PROFILE: __, ...inherited } = process.env
  return {
    ...inherited,
    ...KEYS,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  }
}

async function untilUp(endpoint) {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (
      await fetch(endpoint).then(
        () => true,
        () => false,
      )
    )
      return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('versitygw does not answer')
}
