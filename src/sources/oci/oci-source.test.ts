import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { needs } from '../../testing/needs.js'
import { type Layer, type OciRegistry, REGISTRY_USER, startOciRegistry } from '../../testing/oci-registry.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { testSourceContract } from '../source.contract.js'
import type { ListedObject, Source } from '../source.js'
import { openOciSource } from './oci-source.js'

const skip = needs('docker-registry', 'docker-registry')

const open = (source: string, anonymous?: boolean): Source =>
  openOciSource({ name: 'model', source, include: [], exclude: [], ...(anonymous && { anonymous }) })

async function list(source: Source, onLeftOut?: (path: string) => void): Promise<readonly ListedObject[]> {
  const objects: ListedObject[] = []
  for await (const page of source.list({ onLeftOut })) objects.push(...page)
  return objects
}

async function read(source: Source, object: ListedObject): Promise<string> {
  const fetcher = await source.openFetcher({ connections: 1 })
  const chunks: Uint8Array[] = []
  const sink = (chunk: Uint8Array) => {
    chunks.push(Buffer.from(chunk))
    return 0
  }
  await fetcher.fetch({ ...object, offset: 0, length: object.sizeBytes, stallTimeoutMs: 5000, sink })
  await fetcher.close()
  return Buffer.concat(chunks).toString()
}

if (skip !== false) test('a source of kind oci', { skip }, () => {})
else
  testSourceContract('oci', async () => {
    const ends: (() => unknown)[] = []
    const registry = await startOciRegistry({ after: (end) => void ends.push(end as () => unknown) })
    const layers = new Map<string, Layer>()
    const push = () => registry.push('org/model', 'v1', [...layers.values()])
    return {
      source: open(`oci://${registry.host}/org/model:v1`),
      put: async (title, body) => {
        layers.set(title, { title, body })
        await push()
      },
      remove: async (title) => {
        layers.delete(title)
        await push()
      },
      keepsVersions: true,
      close: async () => {
        for (const end of ends.reverse()) await end()
      },
    }
  })

test('the files of an artifact are the layers that name one', { skip }, async (context) => {
  const registry = await startOciRegistry(context)
  const model = 'application/vnd.cncf.model.weight.v1'
  const folder = 'application/vnd.oci.image.layer.v1.tar+gzip'
  const path = (name: string) => ({ 'org.cncf.model.filepath': name })
  await registry.push('org/model', 'latest', [
    { title: 'config.json', body: Buffer.from('1') },
    { title: 'tokens', body: Buffer.from('2'), mediaType: folder },
    { title: 'x.tar.gz', body: Buffer.from('7'), mediaType: folder },
    { body: Buffer.from('3'), mediaType: `${model}.raw`, annotations: path('w.safetensors') },
    { body: Buffer.from('4'), mediaType: `${model}.tar`, annotations: path('old.bin') },
    { body: Buffer.from('5') },
    { title: '', body: Buffer.from('6') },
  ])
  const left: string[] = []
  const source = open(`oci://${registry.host}/org/model`)
  const objects = await list(source, (each) => void left.push(each))
  assert.deepEqual(
    objects.map(({ key }) => key),
    ['config.json', 'tokens.tar.gz', 'x.tar.gz', 'w.safetensors', 'old.bin.tar'],
  )
  assert.equal(left.length, 2)
  assert.equal(await read(source, objects[3]!), '3')
})

for (const { what, layers, code } of [
  { what: 'a container image', layers: [{ body: Buffer.from('tar') }], code: 'SOURCE_NOT_FOUND' },
  {
    what: 'two layers of one name',
    layers: [
      { title: 'a', body: Buffer.from('1') },
      { title: 'a', body: Buffer.from('2') },
    ],
    code: 'SOURCE_UNREACHABLE',
  },
  ...['.', './', '..'].map((title) => ({
    what: `a packed folder ${title}`,
    layers: [{ title, body: Buffer.from('tar'), mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' }],
    code: 'KEY_UNSAFE' as const,
  })),
] as const)
  test(`${what} is no source`, { skip }, async (context) => {
    const registry = await startOciRegistry(context)
    await registry.push('org/model', 'v1', layers)
    await assert.rejects(list(open(`oci://${registry.host}/org/model:v1`)), { code })
  })

test('an index leads to its only manifest, and a digest pins', { skip }, async (context) => {
  const registry = await startOciRegistry(context)
  const one = await registry.push('m', 'one', [{ title: 'a', body: Buffer.from('1') }])
  const two = await registry.push('m', 'two', [{ title: 'b', body: Buffer.from('2') }])
  await registry.pushIndex('m', 'single', [one])
  await registry.pushIndex('m', 'both', [one, two])
  const keys = async (reference: string) =>
    (await list(open(`oci://${registry.host}/m${reference}`))).map(({ key }) => key)
  assert.deepEqual(await keys(':single'), ['a'])
  assert.deepEqual(await keys(`:one@${two.digest}`), ['b'])
  await assert.rejects(
    keys(':both'),
    (error) => isDscError(error, 'USAGE') && error.message.includes(one.digest),
  )
  await assert.rejects(keys(':none'), { code: 'SOURCE_NOT_FOUND' })
})

test('a private registry is asked with the credentials of docker', { skip }, async (context) => {
  const registry = await startOciRegistry(context, { isPrivate: true })
  await registry.push('org/model', 'v1', [{ title: 'a', body: Buffer.from('1') }])
  const source = `oci://${registry.host}/org/model:v1`
  await logIn(context, registry, REGISTRY_USER)
  const [object] = await list(open(source))
  assert.equal(await read(open(source), object!), '1')
  await assert.rejects(list(open(source, true)), { code: 'SOURCE_DENIED' })
  await logIn(context, registry, 'ada:wrong')
  await assert.rejects(list(open(source)), { code: 'SOURCE_DENIED' })
})

async function logIn(context: TestContext, { host }: Pick<OciRegistry, 'host'>, user: string): Promise<void> {
  const folder = await temporaryDirectory(context)
  mkdirSync(folder, { recursive: true })
  const auth = Buffer.from(user).toString('base64')
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }))
  process.env.DOCKER_CONFIG = folder
  context.after(() => {
    delete process.env.DOCKER_CONFIG
  })
}

test('a token is asked for where the registry says so, and again before it is over', async (context) => {
  const { host, asked } = await startTokenRegistry(context)
  await logIn(context, { host }, 'ada:secret')
  const source = open(`oci://${host}/org/model:v1`)
  const [object] = await list(source)
  assert.equal(await read(source, object!), 'bytes')
  assert.ok(asked.length >= 2, 'each token is good for one request')
  for (const { url, authorization } of asked) {
    assert.equal(url, '/token?service=registry&scope=repository%3Aorg%2Fmodel%3Apull')
    assert.equal(authorization, `Basic ${Buffer.from('ada:secret').toString('base64')}`)
  }
})

test('a scope that names no resource is asked for too', async (context) => {
  const { host, asked } = await startTokenRegistry(context, { scope: 'aws' })
  await list(open(`oci://${host}/org/model:v1`))
  assert.match(asked[0]!.url, /scope=repository%3Aorg%2Fmodel%3Apull&scope=aws$/)
})

test('a scope of another repository is not', async (context) => {
  const { host, asked } = await startTokenRegistry(context, { scope: 'repository:user/image:pull' })
  await list(open(`oci://${host}/org/model:v1`))
  assert.doesNotMatch(asked[0]!.url, /image/)
})

test('a login that has run out does not keep a public repository away', async (context) => {
  const { host, asked } = await startTokenRegistry(context, { refusesLogins: true })
  await logIn(context, { host }, 'ada:old')
  await list(open(`oci://${host}/org/model:v1`))
  assert.deepEqual(
    asked.slice(0, 2).map(({ authorization }) => authorization?.slice(0, 5)),
    ['Basic', undefined],
  )
})

interface TokenRegistryOptions {
  /** Of its challenges. */
  readonly scope?: string
  readonly refusesLogins?: boolean
}

/** A registry, only as much as is asked of it here, whose tokens are good for one request. */
async function startTokenRegistry(context: TestContext, options: TokenRegistryOptions = {}) {
  const asked: { readonly url: string; readonly authorization: string | undefined }[] = []
  const digest = 'sha256:277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9'
  const title = { 'org.opencontainers.image.title': 'a' }
  const layer = { mediaType: 'text/plain', digest, size: 5, annotations: title }
  let good = ''
  const server = createServer((request, response) => {
    const { url = '', headers } = request
    const { host } = headers
    if (url.startsWith('/token')) {
      asked.push({ url, authorization: headers.authorization })
      if (options.refusesLogins && headers.authorization) {
        response.writeHead(403).end('{"errors":[{"code":"DENIED"}]}')
        return
      }
      good = `t${asked.length}`
      response.end(JSON.stringify({ access_token: good, expires_in: 0.001 }))
    } else if (headers.authorization !== `Bearer ${good}`) {
      const challenge = `Bearer realm="http://${host}/token",service="registry"${options.scope ? `,scope="${options.scope}"` : ''}`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    } else {
      good = 'used'
      response.end(url.includes('/blobs/') ? 'bytes' : JSON.stringify({ layers: [layer] }))
    }
  })
  const port = await listenLocally(server, context)
  return { host: `127.0.0.1:${port}`, asked }
}
