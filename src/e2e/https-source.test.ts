import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { type Fault, type FaultRule, startFaultProxy } from '../testing/fault-proxy.js'
import { needs } from '../testing/needs.js'
import { startNginx } from '../testing/nginx-server.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

/** In several parts. */
const LARGE = randomBytes(40 << 20)
const sha256 = (body: string | Uint8Array) => createHash('sha256').update(body).digest('hex')

type Files = Readonly<Record<string, string | Uint8Array>>

/**
 * nginx with these files, a proxy before it that spoils what it is told to, and a machine with a cache. `settings`: for
 * faults to survive; where none is silence, a busy machine may be silent for seconds and is not asked again.
 */
async function open(
  context: TestContext,
  files: Files,
  settings: { readonly retryFor?: string; readonly stage?: { readonly stallTimeout: string } } = {},
) {
  const { origin, folder } = await startNginx(context)
  await writeTree(folder, files)
  const proxy = await startFaultProxy(origin)
  context.after(() => proxy.close())
  const world = await makeWorld(context, settings)
  return { web: proxy.endpoint, folder, proxy, world }
}

const start = (world: World, ...words: readonly string[]) =>
  world.dsc('prepare', ...words, '--task', 'a', '--json')

async function prepare(world: World, ...words: readonly string[]) {
  const { stdout } = await succeeds(start(world, ...words))
  return JSON.parse(stdout)
}

/** Each file of a copy is there, whole, and there is no other. */
function assertFiles(folder: string, expected: Files): void {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()
  assert.deepEqual(found, Object.keys(expected).toSorted())
  for (const [name, body] of Object.entries(expected))
    assert.ok(readFileSync(join(folder, name)).equals(Buffer.from(body)), name)
}

const listOf = (files: Files) =>
  Object.entries(files)
    .map(([name, body]) => `${name.replaceAll(' ', '%20')} ${body.length} ${sha256(body)}\n`)
    .join('')

describe('dsc prepare of a web server’s files', { skip: needs('nginx', 'nginx-light') }, () => {
  test('one file comes in ranges of one etag', async (t) => {
    const { web, proxy, world } = await open(t, { 'd/large.bin': LARGE })
    const copy = await prepare(world, `${web}/d/large.bin`)
    assertFiles(copy.path, { 'large.bin': LARGE })
    const ranges = proxy.requests.filter(({ line }) => /bytes=\d{2}/.test(line))
    assert.ok(ranges.length > 1, proxy.requests.map(({ line }) => line).join('\n'))
    assert.ok(ranges.some(({ headers }) => headers['if-range'] !== undefined))
    assert.ok(proxy.sentBytes < LARGE.length + 100_000)
  })

  test('files.txt names files by size and digest, which prove them; --refresh takes only what changed', async (t) => {
    const files = { 'a b/one.bin': randomBytes(9000), 'two.txt': 'two', 'large.bin': LARGE }
    const { web, folder, proxy, world } = await open(t, {})
    await writeTree(join(folder, 'd'), { ...files, 'files.txt': `# a remark\n${listOf(files)}` })
    const copy = await prepare(world, `${web}/d/files.txt`)
    assertFiles(copy.path, files)
    assert.deepEqual(copy.downloaded.verifiedBy, { sha256: 3 })
    assert.equal(proxy.count(/^HEAD/), 0)
    const changed = { ...files, 'two.txt': 'three', 'new.txt': 'new' }
    await writeTree(join(folder, 'd'), { ...changed, 'files.txt': listOf(changed) })
    proxy.forget()
    const next = await prepare(world, `${web}/d/files.txt`, '--refresh')
    assertFiles(next.path, changed)
    assert.deepEqual(proxy.requests.map(({ line }) => line.split(' ')[1]).toSorted(), [
      '/d/files.txt',
      '/d/new.txt',
      '/d/two.txt',
    ])
  })

  test('BagIt and Croissant manifests are datasets, proven by their digests', async (t) => {
    const { web, folder, world } = await open(t, {})
    const payload = { 'data/a b.bin': randomBytes(5000), 'data/50%25.txt': 'half' }
    const bag = {
      'bagit.txt': 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n',
      'manifest-sha256.txt': Object.entries(payload)
        .map(([name, body]) => `${sha256(body)}  ${name.replaceAll('%', '%25')}\n`)
        .join(''),
    }
    await writeTree(join(folder, 'bag'), { ...bag, ...payload })
    const bagged = await prepare(world, `${web}/bag/manifest-sha256.txt`)
    assertFiles(bagged.path, payload)
    assert.deepEqual(bagged.downloaded.verifiedBy, { sha256: 2 })

    const table = 'text,label\nhello,1\n'
    const distribution = [
      {
        '@type': 'cr:FileObject',
        '@id': 'table',
        contentUrl: 'data/table.csv',
        sha256: sha256(table),
        contentSize: `${table.length} B`,
      },
      { '@type': 'cr:FileObject', '@id': 'inner', contentUrl: 'inner.csv', containedIn: { '@id': 'table' } },
      { '@type': 'cr:FileSet', '@id': 'all', containedIn: { '@id': 'table' }, includes: '*.csv' },
    ]
    const croissant = { '@context': {}, '@type': 'sc:Dataset', distribution }
    await writeTree(join(folder, 'c'), {
      'data/table.csv': table,
      'croissant.json': JSON.stringify(croissant),
    })
    const described = await prepare(world, `${web}/c/croissant.json`)
    assertFiles(described.path, { 'data/table.csv': table })
    assert.deepEqual(described.downloaded.verifiedBy, { sha256: 1 })
  })

  for (const [size, body] of [
    ['large', LARGE],
    ['small', LARGE.subarray(0, 100_000)],
  ] as const)
    test(`an MD5 of a Croissant manifest proves a ${size} file, and refuses another one by name`, async (t) => {
      const { web, folder, world } = await open(t, { 'd/a.bin': body })
      const md5 = createHash('md5').update(body).digest('base64')
      const file = { '@type': 'cr:FileObject', contentUrl: 'd/a.bin', contentSize: `${body.length} B`, md5 }
      const list = (distribution: unknown) =>
        writeTree(folder, { 'croissant.json': JSON.stringify({ distribution }) })
      await list([file])
      const copy = await prepare(world, `${web}/croissant.json`)
      assertFiles(copy.path, { 'd/a.bin': body })
      assert.deepEqual(copy.downloaded.verifiedBy, { 'etag-md5': 1 })
      await succeeds(world.dsc('verify', copy.dataset))
      await list([{ ...file, md5: createHash('md5').update('other').digest('hex') }])
      const { code, stderr } = await world.dsc('prepare', `${web}/croissant.json`, '--refresh', '--task', 'a')
      assert.notEqual(code, 0)
      assert.match(stderr, /d\/a\.bin.*md5/i)
    })

  test('a server without ranges and etags is read as a whole, beside one with them', async (t) => {
    const { web, folder, proxy, world } = await open(t, { 'plain/large.bin': LARGE, 'd/large.bin': LARGE })
    const other = await open(t, { 'd/other.bin': LARGE })
    writeFileSync(join(folder, 'files.txt'), `plain/large.bin\n${other.web}/d/other.bin\n`)
    const copy = await prepare(world, `${web}/files.txt`)
    const name = new URL(other.web).host
    assertFiles(copy.path, { 'plain/large.bin': LARGE, [`${name}/d/other.bin`]: LARGE })
    const whole = proxy.requests.filter(({ line }) => line.startsWith('GET /plain/'))
    assert.ok(whole.reduce((sum, { sentBytes }) => sum + sentBytes, 0) < 2.1 * LARGE.length) // asked for a range once
    assert.ok(other.proxy.requests.some(({ line, status }) => /bytes=\d{2}/.test(line) && status === 206))
  })

  test('a file that changes while it comes is refused by name, and taken as it is by the next call', async (t) => {
    const { web, folder, proxy, world } = await open(t, { 'd/large.bin': LARGE })
    const changed = Buffer.from(LARGE).fill(7, 0, 100) // as long as before: only its etag tells
    let isChanged = false
    proxy.onRequest((line) => {
      if (isChanged || !/bytes=\d{3}/.test(line)) return
      isChanged = true
      writeFileSync(join(folder, 'd/large.bin'), changed)
      utimesSync(join(folder, 'd/large.bin'), 1, 1)
    })
    const refused = await start(world, `${web}/d/large.bin`)
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, /large\.bin/)
    assert.match(refused.stderr, /SOURCE_CHANGED/)
    assert.match(refused.stderr, /--refresh/)
    const copy = await prepare(world, `${web}/d/large.bin`, '--refresh')
    assertFiles(copy.path, { 'large.bin': changed })
  })

  test('a signed URL that runs out in the middle is asked for again where it came from', async (t) => {
    const { web, proxy, world } = await open(t, { 'd/large.bin': LARGE })
    const uses = new Map<string, number>()
    proxy.onRequest((line) => {
      const [, signature] = /signature=(\w+)/.exec(line) ?? []
      if (signature === undefined) return
      uses.set(signature, (uses.get(signature) ?? 0) + 1)
      const gone = [...uses].filter(([, count]) => count > 2).map(([each]) => each)
      proxy.setRules(
        gone.map((each) => strike(`signature=${each}`, { kind: 'status', status: 403, code: '' })),
      )
    })
    const copy = await prepare(world, `${web}/signed/d/large.bin`)
    assertFiles(copy.path, { 'large.bin': LARGE })
    assert.ok(proxy.requests.some(({ status }) => status === 403))
    assert.ok(uses.size > 1)
  })

  test('a server that fails, cuts and asks to wait is asked again, and its file is whole', async (t) => {
    const survives = { retryFor: '2m', stage: { stallTimeout: '3s' } }
    const { web, proxy, world } = await open(t, { 'd/large.bin': LARGE }, survives)
    proxy.setRules([
      strike('GET /d/', { kind: 'status', status: 429, code: 'slow', retryAfterSeconds: 1 }, 1),
      strike('GET /d/', { kind: 'status', status: 503, code: 'away', retryAfterSeconds: 1 }, 1),
      strike('GET /d/.* bytes=\\d{3}', { kind: 'truncate', afterBytes: 1000 }, 1),
      strike('GET /d/.* bytes=\\d{3}', { kind: 'reset', afterBytes: 5000 }, 1),
      strike('GET /d/.* bytes=\\d{3}', { kind: 'stall', afterBytes: 3000 }, 1),
    ])
    const copy = await prepare(world, `${web}/d/large.bin`)
    assertFiles(copy.path, { 'large.bin': LARGE })
    const asked = proxy.requests.filter(({ status }) => status === 429)
    assert.equal(asked.length, 1)
    const next = proxy.requests.find(({ atMs }) => atMs > asked[0]!.atMs)!
    assert.ok(next.atMs - asked[0]!.atMs >= 1000)
  })

  for (const { what, list = 'small.txt', fault, code, says } of [
    {
      what: 'a file that is not there',
      list: 'none.txt',
      code: 'SOURCE_NOT_FOUND',
      says: /none\.txt: there is no such file/,
    },
    {
      what: 'a file that nobody may read',
      list: '../secret/a.txt',
      code: 'SOURCE_DENIED',
      says: /access denied.*403/,
    },
    {
      what: 'a size that is not the file’s',
      list: 'small.txt 3',
      code: 'SOURCE_CHANGED',
      says: /small\.txt: expected/,
    },
    {
      what: 'a digest that is not the file’s',
      list: `small.txt 5 ${sha256('other')}`,
      code: 'CHECKSUM_MISMATCH',
      says: /small\.txt/,
    },
    {
      what: 'a file without a length',
      fault: { kind: 'headers', headers: { 'content-length': null, 'content-range': null } },
      code: 'SOURCE_UNREACHABLE',
      says: /does not say how large/,
    },
    { what: 'a redirect in circles', list: '../round', code: 'SOURCE_UNREACHABLE', says: /leads in circles/ },
  ] as readonly { what: string; list?: string; fault?: Fault; code: string; says: RegExp }[])
    test(`${what} is an error in one sentence, with what to do`, async (t) => {
      const { web, folder, proxy, world } = await open(t, { 'd/small.txt': 'small', 'secret/a.txt': 'x' })
      writeFileSync(join(folder, 'd/files.txt'), `${list}\n`)
      if (fault) proxy.setRules([strike(' /d/small', fault)])
      const refused = await start(world, `${web}/d/files.txt`)
      const { error } = JSON.parse(refused.stderr.trim().split('\n').at(-1)!)
      assert.equal(error.code, code, refused.stderr)
      assert.match(error.message, says)
      assert.ok(error.hint, refused.stderr)
      assert.doesNotMatch(refused.stderr, /\n\s+at /)
    })
})

const strike = (match: string, fault: Fault, times?: number): FaultRule => ({
  match,
  fault,
  ...(times === undefined ? {} : { times }),
})
