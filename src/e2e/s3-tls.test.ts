import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { makeCertificate } from '../testing/certificate.js'
import { succeeds } from '../testing/dsc-processes.js'
import { startS3Server } from '../testing/s3-server.js'
import { startTlsFront } from '../testing/tls-front.js'
import { makeWorld, s3Dataset } from '../testing/world.js'

const folder = mkdtempSync(join(tmpdir(), 'dsc-test-s3-tls-'))
const { certFile, keyFile } = makeCertificate(folder)
const other = join(folder, 'other')
mkdirSync(other)
const { certFile: otherCertFile } = makeCertificate(other)
const configFile = join(folder, 'aws-config')
writeFileSync(configFile, `[default]\nca_bundle = ${certFile}\n[profile plain]\nregion = us-east-1\n`)
const textFile = join(folder, 'no-certificate.txt')
writeFileSync(textFile, 'hello\n')

const server = await startS3Server()
const front = await startTlsFront(server.endpoint, { certFile, keyFile })
const bucket = await server.makeBucket()
const large = Buffer.alloc(20 * 1024 * 1024, 'dsc') // enough to be fetched by threads
await server.putObject(bucket, 'data/large.bin', large)
await server.putObject(bucket, 'data/small.txt', 'small')
after(async () => {
  front.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

async function prepare(
  context: TestContext,
  environment: Readonly<Record<string, string>>,
  endpoint = `https://127.0.0.1:${front.port}`,
) {
  const world = await makeWorld(context, {
    server,
    datasets: { flowers: s3Dataset(bucket, 'data/', endpoint) },
  })
  return world.start(['prepare', 'flowers', '--task', 'mine'], { environment }).finished
}

for (const { how, environment } of [
  { how: 'AWS_CA_BUNDLE', environment: { AWS_CA_BUNDLE: certFile } },
  { how: 'ca_bundle of the AWS profile', environment: { AWS_CONFIG_FILE: configFile } },
  { how: 'NODE_EXTRA_CA_CERTS', environment: { NODE_EXTRA_CA_CERTS: certFile } },
]) {
  test(`a server of a private authority is listed and read when ${how} names the authority`, async (context) => {
    const run = await succeeds(prepare(context, environment))
    const path = run.stdout.trimEnd()
    assert.ok(readFileSync(join(path, 'large.bin')).equals(large))
    assert.equal(readFileSync(join(path, 'small.txt'), 'utf8'), 'small')
  })
}

for (const { name, environment, endpoint, exitCode, says } of [
  {
    name: 'a server whose authority nobody named',
    environment: {},
    exitCode: 8,
    says: /does not trust[\s\S]*try: set AWS_CA_BUNDLE/,
  },
  {
    name: 'a server of another authority than AWS_CA_BUNDLE names, which stands above all others',
    environment: {
      AWS_CA_BUNDLE: otherCertFile,
      AWS_CONFIG_FILE: configFile,
      NODE_EXTRA_CA_CERTS: certFile,
    },
    exitCode: 8,
    says: /does not trust/,
  },
  {
    name: 'a server whose certificate has another host name',
    environment: { AWS_CA_BUNDLE: certFile },
    endpoint: `https://localhost:${front.port}`,
    exitCode: 8,
    says: /another host name[\s\S]*try: write the endpoint with a name/,
  },
  {
    name: 'a server that does not speak TLS',
    environment: {},
    endpoint: server.endpoint.replace('http:', 'https:'),
    exitCode: 8,
    says: /does not speak TLS[\s\S]*begin the endpoint with http:/,
  },
  {
    name: 'an AWS_CA_BUNDLE that is not there',
    environment: { AWS_CA_BUNDLE: join(folder, 'missing.pem') },
    exitCode: 3,
    says: /missing\.pem cannot be read/,
  },
  {
    name: 'an AWS_CA_BUNDLE without a certificate',
    environment: { AWS_CA_BUNDLE: textFile },
    exitCode: 3,
    says: /no-certificate\.txt are not certificates/,
  },
]) {
  test(`${name} is refused with the reason and what to do`, async (context) => {
    const run = await prepare(context, environment, endpoint)
    assert.equal(run.code, exitCode, run.stderr)
    assert.match(run.stderr, says)
  })
}
