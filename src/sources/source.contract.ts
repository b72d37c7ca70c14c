import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isDscError } from '../failure/dsc-error.js'
import type { Fetcher, FetchRequest, ListedObject, Source } from './source.js'

/** A source that a contract can fill and change. */
export interface ContractSource {
  readonly source: Source
  put(key: string, body: Uint8Array): Promise<void>
  remove(key: string): Promise<void>
  /** The server's answers are not well-formed for some keys. */
  readonly hasBrokenXml?: boolean
  /** Whether listed objects stay readable for ever, even if the source changes. */
  readonly keepsVersions?: boolean
  close(): Promise<void>
}

const BODY = Buffer.from(Array.from({ length: 1_200_000 }, (_, index) => (index * 7) % 251))
const KEYS = ['a', 'a-b', 'a.d/x', 'ab/b', 'ab/b c/ü+%2F?#.txt', 'b', 'é/日本.png', 'z(1)!*~.jpg']
/** Keys that need escaping in XML, which s3rver does twice. */
const XML_KEYS = ['x&y.txt', "x'y<z>.txt"]

/** Tests the contract of every adapter of the source port. `open` returns an empty source. */
export function testSourceContract(name: string, open: () => Promise<ContractSource>): void {
  describe(`a source of kind ${name}`, () => {
    let bench: ContractSource
    let keys: readonly string[]
    let fetcher: Fetcher
    let listed: Map<string, ListedObject>
    const fetchInto = async (key: string, rest: Partial<FetchRequest> = {}) => {
      const { etag, versionId, sizeBytes } = listed.get(key)!
      const chunks: Uint8Array[] = []
      await fetcher.fetch({
        key,
        etag,
        versionId,
        sizeBytes,
        offset: 0,
        length: sizeBytes,
        stallTimeoutMs: 5000,
        sink: (chunk) => {
          chunks.push(Buffer.from(chunk))
          return 0
        },
        ...rest,
      })
      return Buffer.concat(chunks)
    }
    const list = async () => {
      const objects: ListedObject[] = []
      for await (const page of bench.source.list({})) objects.push(...page)
      return objects
    }

    before(async () => {
      bench = await open()
      keys = bench.hasBrokenXml ? KEYS : [...KEYS, ...XML_KEYS]
      for (const key of keys) await bench.put(key, Buffer.from(`body of ${key}`))
      await bench.put('big', BODY)
      await bench.put('empty', Buffer.alloc(0))
      listed = new Map((await list()).map((object) => [object.key, object]))
      fetcher = await bench.source.openFetcher({ connections: 4 })
    })
    after(async () => {
      await fetcher.close()
      await bench.source.close()
      await bench.close()
    })

    test('lists every object once, with its size', async () => {
      const objects = await list()
      assert.deepEqual(objects.map((object) => object.key).sort(), [...keys, 'big', 'empty'].sort())
      assert.equal(objects.find((object) => object.key === 'big')?.sizeBytes, BODY.length)
      assert.ok(objects.every((object) => object.etag !== null && !object.etag.includes('"')))
    })

    test('gives an unchanged object the same etag again', async () => {
      for (const object of await list()) assert.equal(object.etag, listed.get(object.key)?.etag)
    })

    test('reads whole objects, whatever is in their keys', async () => {
      for (const key of keys) assert.equal((await fetchInto(key)).toString(), `body of ${key}`)
      assert.ok((await fetchInto('big')).equals(BODY))
    })

    test('reads a range', async () => {
      const range = await fetchInto('big', { offset: 70_001, length: 100_000 })
      assert.ok(range.equals(BODY.subarray(70_001, 170_001)))
    })

    test('tells its facts before the first byte', async () => {
      const order: string[] = []
      await fetchInto('a', {
        onFacts: () => void order.push('facts'),
        sink: () => order.push('bytes') * 0,
      })
      assert.deepEqual(order, ['facts', 'bytes'])
    })

    test('refuses bytes of another version of the object', async () => {
      if (!bench.keepsVersions)
        await assert.rejects(fetchInto('big', { etag: '00000000000000000000000000000000' }), isChanged)
      await bench.put('replaced', Buffer.from('one'))
      listed = new Map((await list()).map((object) => [object.key, object]))
      await bench.put('replaced', Buffer.from('two'))
      if (bench.keepsVersions) assert.equal((await fetchInto('replaced')).toString(), 'one')
      else await assert.rejects(fetchInto('replaced'), isChanged)
    })

    test('says that an object is gone', async () => {
      await bench.put('gone', Buffer.from('x'))
      listed = new Map((await list()).map((object) => [object.key, object]))
      await bench.remove('gone')
      if (bench.keepsVersions) assert.equal((await fetchInto('gone')).toString(), 'x')
      else await assert.rejects(fetchInto('gone'), { code: 'SOURCE_NOT_FOUND' })
    })

    test('passes on what the sink throws', async () => {
      const full = new Error('disk full')
      await assert.rejects(
        fetchInto('big', {
          sink: () => {
            throw full
          },
        }),
        full,
      )
    })

    test('stops when the signal aborts', async () => {
      const stop = new AbortController()
      const reason = new Error('stop')
      const work = fetchInto('big', {
        signal: stop.signal,
        sink: () => {
          stop.abort(reason)
          return 0
        },
        // In memory there is one chunk, so the abort comes before it.
        onFacts: () => name === 'memory' && stop.abort(reason),
      })
      await assert.rejects(work)
    })
  })
}

function isChanged(error: unknown): boolean {
  return isDscError(error, 'SOURCE_CHANGED')
}
