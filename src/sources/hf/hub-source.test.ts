import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { type HubServer, startHubServer } from '../../testing/hub-server.js'
import { listAll, readObject } from '../../testing/read-source.js'
import { testSourceContract } from '../source.contract.js'
import type { ListedObject, Source } from '../source.js'
import { openHubSource } from './hub-source.js'

testSourceContract('hf', async () => {
  const hub = await startHubServer()
  const files = new Map<string, Uint8Array>()
  const commit = () =>
    hub.commit(
      'datasets/org/name',
      Object.fromEntries([...files].map(([key, body]) => [`data/${key}`, body])),
    )
  commit()
  return {
    source: open(hub, 'hf://datasets/org/name/data'),
    keepsVersions: true,
    put: async (key, body) => {
      files.set(key, body)
      commit()
    },
    remove: async (key) => {
      files.delete(key)
      commit()
    },
    close: () => hub.close(),
  }
})

describe('a hub', () => {
  let hub: HubServer
  before(async () => {
    hub = await startHubServer()
    process.env.HF_TOKEN = 'hush'
  })
  after(async () => {
    delete process.env.HF_TOKEN
    await hub.close()
  })

  test('lists many pages of one commit, with what proves each file', async () => {
    const names = Array.from({ length: 120 }, (_, at) => `${String(at).padStart(3, '0')}.txt`)
    const commit = hub.commit('models/org/many', {
      ...Object.fromEntries(names.map((name) => [name, name])),
      'w.safetensors': 'weights',
    })
    const source = open(hub, 'hf://org/many')
    const objects: ListedObject[] = []
    for await (const page of source.list({})) {
      objects.push(...page)
      hub.commit('models/org/many', { 'other.txt': 'x' }) // a push between two pages
    }
    assert.deepEqual(objects.map(({ key }) => key).sort(), [...names, 'w.safetensors'])
    assert.ok(objects.every(({ versionId }) => versionId === commit))
    const sha256 = createHash('sha256').update('weights').digest('base64')
    const weights = objects.find(({ key }) => key === 'w.safetensors')
    assert.deepEqual(weights?.checksum, { algorithm: 'sha256', value: sha256 })
    const git = createHash('sha1').update(`blob 7\0${names[0]}`).digest('base64')
    assert.deepEqual(objects[0]?.checksum, { algorithm: 'git-sha1', value: git })
  })

  for (const { what, link } of [
    { what: 'another host', link: (url: URL) => `https://huggingface.co${url.pathname}${url.search}` },
    { what: 'another scheme', link: (url: URL) => `https://${url.host}${url.pathname}${url.search}` },
    { what: 'a path', link: (url: URL) => `${url.pathname}${url.search}` },
  ])
    test(`lists all pages where the next one is told by ${what}`, async () => {
      hub.commit('models/org/mirrored', manyFiles(120))
      hub.onRequest = (_request, response) => {
        const setHeader = response.setHeader.bind(response)
        response.setHeader = (name, value) => {
          const [, target] = /^<([^>]*)>/.exec(String(value)) ?? []
          return setHeader(name, name === 'link' ? `<${link(new URL(target!))}>; rel="next"` : value)
        }
        return false
      }
      const objects = await listAll(open(hub, 'hf://org/mirrored')).finally(() => {
        hub.onRequest = undefined
      })
      assert.equal(objects.length, 120)
    })

  for (const { what, link } of [
    { what: 'lost', link: undefined },
    { what: 'not understood', link: 'page 2' },
  ])
    test(`never takes a page for the last whose link to the next is ${what}`, async () => {
      hub.commit('models/org/cut', manyFiles(120))
      hub.onRequest = (_request, response) => {
        const setHeader = response.setHeader.bind(response)
        response.setHeader = (name, value) => {
          if (name !== 'link') return setHeader(name, value)
          return link === undefined ? response : setHeader(name, link)
        }
        return false
      }
      const listing = listAll(open(hub, 'hf://org/cut')).finally(() => {
        hub.onRequest = undefined
      })
      const code = link === undefined ? 'SOURCE_TRUNCATED' : 'SOURCE_UNREACHABLE'
      await assert.rejects(listing, { code })
    })

  test('asks for each folder where the server lists one at a time', async () => {
    const files = { 'a.txt': '1', 'b/c/d.txt': '2', 'b/e.txt': '3', 'f/g.txt': '4' }
    hub.commit('models/org/flat', files)
    hub.onRequest = (request) => {
      request.url = request.url!.replace('recursive=true', 'recursive=false')
      return false
    }
    const objects = await listAll(open(hub, 'hf://org/flat')).finally(() => {
      hub.onRequest = undefined
    })
    assert.deepEqual(objects.map(({ key }) => key).sort(), Object.keys(files).sort())
  })

  test('says so where a folder is listed and what is in it is not', async () => {
    hub.commit('models/org/empty', { 'b/c.txt': '2' })
    hub.onRequest = (request, response) => {
      if (!request.url!.includes('/tree/')) return false
      const isRoot = !request.url!.includes('/b?')
      response.end(JSON.stringify(isRoot ? [{ type: 'directory', path: 'b', oid: '0', size: 0 }] : []))
      return true
    }
    const listing = listAll(open(hub, 'hf://org/empty')).finally(() => {
      hub.onRequest = undefined
    })
    await assert.rejects(listing, { code: 'SOURCE_TRUNCATED' })
  })

  test('reads a revision by branch, tag with a slash, commit and pull request', async () => {
    const first = hub.commit('models/org/revised', { 'a.txt': 'one' }, { branch: 'release/1' })
    hub.commit('models/org/revised', { 'a.txt': 'two' }, { branch: 'refs/pr/3' })
    hub.commit('models/org/revised', { 'a.txt': 'three' })
    for (const [revision, body] of [
      ['@release%2F1', 'one'],
      [`@${first}`, 'one'],
      ['@refs/pr/3', 'two'],
      ['', 'three'],
    ])
      assert.equal(await readAll(open(hub, `hf://org/revised${revision}`)), body)
  })

  test('never shows its token to where large files are, and asks again for a signed URL that ran out', async () => {
    hub.commit('models/org/large', { 'w.bin': 'x'.repeat(1000) })
    const source = open(hub, 'hf://org/large')
    const [object] = await listAll(source)
    const fetcher = await source.openFetcher({ connections: 1 })
    const read = async (offset: number) => {
      let text = ''
      await fetcher.fetch({
        ...object!,
        offset,
        length: 500,
        stallTimeoutMs: 5000,
        sink: (chunk) => {
          text += Buffer.from(chunk).toString()
          return 0
        },
      })
      return text
    }
    hub.requests.length = 0
    assert.equal((await read(0)).length, 500)
    assert.equal((await read(500)).length, 500)
    assert.equal(hub.requests.filter((line) => line.includes('/resolve/')).length, 1)
    hub.expireSignedUrls()
    assert.equal((await read(0)).length, 500)
    assert.equal(hub.requests.filter((line) => line.includes('/resolve/')).length, 2)
    assert.ok(hub.storeHeaders.length >= 3)
    assert.ok(hub.storeHeaders.every(({ authorization }) => authorization === undefined))
    await fetcher.close()
  })

  for (const { what, name, source, code, says } of [
    {
      what: 'a gated repository',
      name: 'models/org/gated',
      source: 'hf://org/gated',
      code: 'SOURCE_DENIED' as const,
      says: /gated.*GatedRepo/,
    },
    {
      what: 'a repository that does not exist',
      name: 'models/org/none',
      source: 'hf://org/nothing',
      code: 'SOURCE_NOT_FOUND' as const,
      says: /repository not found/,
    },
    {
      what: 'a revision that does not exist',
      name: 'models/org/rev',
      source: 'hf://org/rev@v9',
      code: 'SOURCE_NOT_FOUND' as const,
      says: /no such revision/,
    },
    {
      what: 'a folder that does not exist',
      name: 'models/org/folder',
      source: 'hf://org/folder/none',
      code: 'SOURCE_NOT_FOUND' as const,
      says: /no such file or folder/,
    },
  ])
    test(`says what is wrong with ${what}`, async () => {
      hub.commit(name, { 'a.txt': 'x' })
      if (name.endsWith('gated')) hub.protect(name, { isGated: true })
      await assert.rejects(readAll(open(hub, source)), (error) => {
        assert.ok(isDscError(error, code), String(error))
        assert.match(error.message, says)
        assert.doesNotMatch(error.message, /hush/)
        return true
      })
    })

  test('waits as long as it is told before it asks again', async () => {
    hub.commit('models/org/busy', { 'a.txt': 'x' })
    const askedAt: number[] = []
    hub.onRequest = (_request, response) => {
      askedAt.push(performance.now())
      if (askedAt.length > 1) return false
      response.writeHead(429, { ratelimit: '"api";r=0;t=1', 'content-length': '0' })
      response.end()
      return true
    }
    assert.equal((await listAll(open(hub, 'hf://org/busy'))).length, 1)
    hub.onRequest = undefined
    assert.ok(askedAt[1]! - askedAt[0]! >= 1000)
  })

  for (const { source, key } of [
    { source: 'hf://org/files/w.safetensors', key: 'w.safetensors' },
    { source: 'hf://org/files/sub/same', key: 'same' },
    { source: 'hf://org/files/same', key: 'same' },
  ])
    test(`one file is a source, or the folder of a file of its name: ${source}`, async () => {
      const bodies = { 'w.safetensors': 'weights', 'sub/same': 'below', 'same/same': 'inside' }
      hub.commit('models/org/files', { ...bodies, ...manyFiles(120) })
      const found = await listAll(open(hub, source))
      assert.deepEqual(
        found.map((object) => object.key),
        [key],
      )
      const [, file = ''] = source.split('/files/')
      const bodyOf: Readonly<Record<string, string>> = { ...bodies, same: 'inside' }
      assert.equal(await readAll(open(hub, source)), bodyOf[file])
    })

  test('sends the token to a private repository, and none where it is to be anonymous', async () => {
    hub.commit('models/org/private', { 'a.txt': 'x' })
    hub.protect('models/org/private', { token: 'hush' })
    assert.equal(await readAll(open(hub, 'hf://org/private')), 'x')
    const anonymous = openHubSource({
      name: 'a',
      source: 'hf://org/private',
      endpoint: hub.endpoint,
      anonymous: true,
      include: [],
      exclude: [],
    })
    await assert.rejects(listAll(anonymous), { code: 'SOURCE_NOT_FOUND' })
  })
})

function manyFiles(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}.txt`, String(at)]))
}

function open(hub: HubServer, source: string): Source {
  return openHubSource({ name: 'a', source, endpoint: hub.endpoint, include: [], exclude: [] })
}

async function readAll(source: Source): Promise<string> {
  let text = ''
  for (const object of await listAll(source)) text += await readObject(source, object)
  return text
}
