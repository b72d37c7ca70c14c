import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { Check } from '../cli/doctor/check.js'
import { DSC } from '../testing/dsc-processes.js'
import { startS3Server } from '../testing/s3-server.js'

const root = mkdtempSync(join(tmpdir(), 'dsc-doctor-'))
after(() => rmSync(root, { recursive: true }))

/** Runs the real binary; not spawnSync, because the S3 server may live in this process. */
async function doctor(yaml: string, environment: Readonly<Record<string, string>> = {}) {
  writeFileSync(join(root, 'dsc.yaml'), yaml)
  const child = spawn(DSC[0]!, [...DSC.slice(1), 'doctor', '--json'], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: root, ...environment },
  })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const { checks } = JSON.parse(stdout) as { checks: Check[] }
  const found = Object.fromEntries(
    checks.map(({ name, status }) => [name.replace(/ against .*/, ''), status]),
  )
  return { exitCode: child.exitCode, stderr, found, checks }
}

test('dsc doctor passes on a machine where everything works, and compares the clock with the S3 server', async (t) => {
  const server = await startS3Server()
  t.after(() => server.close())
  const bucket = await server.makeBucket()
  await server.putObject(bucket, 'flowers/a.jpg', 'a')
  const source = `{ source: "s3://${bucket}/flowers/", endpoint: "${server.endpoint}", pathStyle: true, region: us-east-1 }`
  const { exitCode, stderr, found } = await doctor(
    `cache: { root: cache }\ndatasets: { flowers: ${source} }\n`,
    server.environment,
  )
  assert.equal(exitCode, 0, stderr)
  assert.equal(found['dataset flowers'], 'ok')
  assert.equal(found.clock, 'ok')
  assert.equal(found['record WAL'], 'ok')

  const missing = await doctor(
    `cache: { root: cache }\ndatasets: { flowers: ${source.replace(bucket, `${bucket}-gone`)} }\n`,
    server.environment,
  )
  assert.equal(missing.exitCode, 3)
  assert.equal(missing.found['dataset flowers'], 'failed')
  const { error } = JSON.parse(missing.stderr) as { error: { code: string; exitCode: number } }
  assert.deepEqual([error.code, error.exitCode], ['DOCTOR_FAILED', 3])
})

test('dsc doctor names an S3 server that does not answer, in bounded time', { timeout: 60_000 }, async () => {
  const { exitCode, found } = await doctor(
    'datasets: { flowers: { source: s3://bucket/, endpoint: "http://127.0.0.1:9", anonymous: true, region: us-east-1 } }\n',
  )
  assert.equal(exitCode, 3)
  assert.equal(found['dataset flowers'], 'failed')
  assert.equal(found.clock, 'skipped')
})

test('dsc doctor tells a mistake in dsc.yaml with its line and checks nothing that depends on it', async () => {
  const { exitCode, checks } = await doctor('cache:\n  minFree: lots\n')
  assert.equal(exitCode, 3)
  assert.match(checks.find(({ name }) => name === 'configuration')!.detail, /dsc\.yaml:2:12: cache\.minFree/)
})
