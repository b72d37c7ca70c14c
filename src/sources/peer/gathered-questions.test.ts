import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { HttpPool } from '../../http/http-pool.js'
import { algorithmOf } from '../../proof/digest.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { formatGatheredHead, parseObjectsQuery } from '../gathered-wire.js'
import { NODE_HEADER, URGENCY_HEADER } from '../peer-wire.js'
import type { Fetcher, FetchRequest } from '../source.js'
import { GatheredQuestions } from './gathered-questions.js'
import { PeerFetcher } from './peer-fetcher.js'
import { PeerReport } from './peer-report.js'

const DIGEST = '0+10 md5:kAFQmDzST7DWlj99KOF/cg=='
const KEYS = Array.from({ length: 5 }, (_, index) => `${index}.bin`)

function bytesOf(key: string): string {
  return key.padEnd(10, '.')
}

/** An object's bytes with their head. */
function framed(key: string): Buffer {
  const head = formatGatheredHead({ status: 200, digest: DIGEST, isProven: true }, 10)
  return Buffer.concat([head, Buffer.from(bytesOf(key))])
}

/** Starts a node that answers requests for many objects by `answer`, and requests for one. */
async function startGiver(
  t: TestContext,
  answer: (keys: readonly string[], response: ServerResponse) => void,
) {
  const asked = { together: [] as string[][], alone: [] as string[], urgencies: [] as unknown[] }
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://giver')
    response.setHeader(NODE_HEADER, 'giver')
    const objects = url.pathname.endsWith('/objects')
      ? parseObjectsQuery('flowers', url.searchParams)
      : undefined
    if (objects) {
      const keys = objects.map(({ key }) => key)
      asked.together.push(keys)
      asked.urgencies.push(request.headers[URGENCY_HEADER])
      answer(keys, response)
    } else {
      const key = url.searchParams.get('key')!
      asked.alone.push(key)
      response.writeHead(206, { 'x-dsc-digest': DIGEST }).end(bytesOf(key))
    }
  })
  const port = await listenLocally(server, t)
  return { url: `http://127.0.0.1:${port}`, asked }
}

/** Fetches all keys in one turn from the giver, and from a store where the giver fails. */
async function fetchAll(
  t: TestContext,
  url: string,
  change: (key: string) => Partial<FetchRequest> = () => ({}),
) {
  const fromStore: string[] = []
  const report = new PeerReport()
  const store: Fetcher = {
    fetch: async ({ key, offset, length, sink }) => {
      fromStore.push(`${key} ${offset}+${length}`)
      sink(Buffer.from(bytesOf(key).slice(offset, offset + length)))
    },
    inspect: () => Promise.reject(new Error('not asked')),
    close: () => Promise.resolve(),
  }
  const fetcher = new PeerFetcher({
    node: 'taker',
    dataset: { name: 'flowers', source: 's3://bucket/flowers/' },
    access: { token: undefined, ca: undefined },
    trustsNodes: false,
    connections: 4,
    report,
    home: {
      findProviders: () => ({ ready: [{ node: 'giver', url }], stagers: [] }),
      take: () => Promise.resolve(true),
      onDamage: () => Promise.resolve(),
      openOriginFetcher: () => Promise.resolve(store),
    },
  })
  t.after(() => fetcher.close())
  const arrived = new Map<string, string>()
  const digests: string[] = []
  const fetchKey = (key: string) =>
    fetcher.fetch({
      ...{ key, sizeBytes: 10, etag: null, versionId: null, offset: 0, length: 10, stallTimeoutMs: 5000 },
      onDigest: ({ digest }) => digests.push(algorithmOf(digest)),
      sink: (chunk) => {
        arrived.set(key, (arrived.get(key) ?? '') + Buffer.from(chunk).toString())
        return 0
      },
      ...change(key),
    })
  const ends = await Promise.allSettled(KEYS.map(fetchKey))
  const failed = ends.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))
  return { arrived, digests, fromStore, failed, origins: report.describe(), fetchKey }
}

const ALL = new Map(KEYS.map((key) => [key, bytesOf(key)]))

test('small files that are asked for in one turn come in one answer', async (t) => {
  const { url, asked } = await startGiver(t, (keys, response) =>
    response.end(Buffer.concat(keys.map(framed))),
  )
  const { arrived, digests, fromStore, origins } = await fetchAll(t, url)
  assert.deepEqual(arrived, ALL)
  assert.deepEqual(asked, { together: [KEYS], alone: [], urgencies: [undefined] })
  assert.deepEqual([digests.length, fromStore], [5, []])
  assert.deepEqual(origins.peerBytes, { giver: 50 })
})

test('a file that somebody waits for stands behind no other', async (t) => {
  const { url, asked } = await startGiver(t, (keys, response) =>
    response.end(Buffer.concat(keys.map(framed))),
  )
  const { arrived } = await fetchAll(t, url, (key) => (key === '3.bin' ? { urgency: 'wanted' } : {}))
  assert.deepEqual(arrived, ALL)
  assert.deepEqual(asked.alone, ['3.bin'])
})

test('an agent that knows no such questions is asked for one file after the other, and not tried again', async (t) => {
  const { url, asked } = await startGiver(t, (_, response) => response.writeHead(404).end('{}'))
  const { arrived, fromStore, fetchKey } = await fetchAll(t, url)
  assert.deepEqual(arrived, ALL)
  await fetchKey('later.bin')
  const alone = [...KEYS, 'later.bin']
  assert.deepEqual([asked.together.length, asked.alone.toSorted(), fromStore], [1, alone, []])
})

test('files that the node lacks or cannot read come from the store, the others from the node', async (t) => {
  const { url } = await startGiver(t, (keys, response) => {
    const status = (key: string) => (key === '1.bin' ? 404 : key === '3.bin' ? 500 : 200)
    const pieces = keys.map((key) =>
      status(key) === 200 ? framed(key) : formatGatheredHead({ status: status(key) }, 0),
    )
    response.end(Buffer.concat(pieces))
  })
  const { arrived, fromStore } = await fetchAll(t, url)
  assert.deepEqual(arrived, ALL)
  assert.deepEqual(fromStore.toSorted(), ['1.bin 0+10', '3.bin 0+10'])
})

test('when the node dies in the middle, the store goes on at the byte where it stopped', async (t) => {
  const { url } = await startGiver(t, (keys, response) => {
    const cutAt = 2 * framed('0.bin').length + framed('2.bin').length - 4
    response.write(Buffer.concat(keys.map(framed)).subarray(0, cutAt))
    setTimeout(() => response.destroy(), 100)
  })
  const { arrived, fromStore, origins } = await fetchAll(t, url)
  assert.deepEqual(arrived, ALL)
  assert.deepEqual(fromStore, ['2.bin 6+4', '3.bin 0+10', '4.bin 0+10'])
  assert.deepEqual([origins.storeBytes, origins.peerBytes], [24, { giver: 26 }])
})

for (const { what, answer } of [
  { what: 'leaves files out', answer: framed('0.bin') },
  { what: 'is none', answer: Buffer.concat([framed('0.bin'), Buffer.from('<html>nothing here</html>')]) },
])
  test(`an answer that ${what} is no reason to wait: the store has the rest`, async (t) => {
    const { url } = await startGiver(t, (_, response) => response.end(answer))
    const { arrived, fromStore } = await fetchAll(t, url)
    assert.deepEqual(arrived, ALL)
    assert.equal(fromStore.length, 4)
  })

for (const facts of [{}, 5, { checksums: [null], uploadPartBytes: null, isEtagMd5: true }])
  test(`a node that says ${JSON.stringify(facts)} of a file is not believed: the store has it`, async (t) => {
    const head = { status: 200, digest: DIGEST, isProven: true, facts: facts as ObjectFacts } as const
    const odd = Buffer.concat([formatGatheredHead(head, 10), Buffer.from(bytesOf('4.bin'))])
    const { url } = await startGiver(t, (keys, response) =>
      response.end(Buffer.concat(keys.map((key) => (key === '4.bin' ? odd : framed(key))))),
    )
    const heard: unknown[] = []
    const { arrived, fromStore } = await fetchAll(t, url, () => ({ onFacts: (found) => heard.push(found) }))
    assert.deepEqual(arrived, ALL)
    assert.deepEqual([heard, fromStore], [[], ['4.bin 0+10']])
  })

for (const { what, status } of [
  { what: 'a longer file', status: 200 },
  { what: 'bytes of a file that it has not', status: 404 },
])
  test(`a node that sends ${what} without an end keeps no other from coming`, {
    timeout: 20_000,
  }, async (t) => {
    const { url } = await startGiver(t, (_, response) => {
      response.write(Buffer.concat([framed('0.bin'), formatGatheredHead({ status }, 1e12)]))
      const timer = setInterval(() => response.write('.'.repeat(100)), 50)
      response.on('close', () => clearInterval(timer))
    })
    const { arrived, fromStore } = await fetchAll(t, url)
    assert.deepEqual(arrived, ALL)
    assert.equal(fromStore.length, 4)
  })

test('a file without a digest where one is needed does not keep the others from coming', async (t) => {
  const bare = Buffer.concat([formatGatheredHead({ status: 200 }, 10), Buffer.from(bytesOf('2.bin'))])
  const { url } = await startGiver(t, (keys, response) =>
    response.end(Buffer.concat(keys.map((key) => (key === '2.bin' ? bare : framed(key))))),
  )
  const { arrived, fromStore } = await fetchAll(t, url, () => ({ needsDigest: true }))
  assert.deepEqual(arrived, ALL)
  assert.deepEqual(fromStore, ['2.bin 0+10'])
})

test('a disk that takes no more of one file fails that one', async (t) => {
  const { url } = await startGiver(t, (keys, response) => response.end(Buffer.concat(keys.map(framed))))
  const { arrived, failed } = await fetchAll(t, url, (key) =>
    key === '1.bin'
      ? {
          sink: () => {
            throw new Error('disk full')
          },
        }
      : {},
  )
  assert.deepEqual(failed, ['Error: disk full'])
  assert.deepEqual([...arrived.keys()], ['0.bin', '2.bin', '3.bin', '4.bin'])
})

test('files that a busy node may refuse are asked for apart from the others', async (t) => {
  const { url, asked } = await startGiver(t, (keys, response) => {
    if (asked.urgencies.at(-1) === 'listed') response.writeHead(425).end()
    else response.end(Buffer.concat(keys.map(framed)))
  })
  const pool = new HttpPool(url, { connections: 4 })
  t.after(() => pool.close())
  const askAlone = () => Promise.reject(new Error('not asked'))
  const questions = new GatheredQuestions({
    ...{ pool, askAlone, stallTimeoutMs: 5000 },
    headers: { host: new URL(url).host },
  })
  const answers = KEYS.map((key, index) => {
    const object = { dataset: 'flowers', source: 's3://b/', key, sizeBytes: 10, etag: null, versionId: null }
    const ignored = { path: '', held: undefined, signal: undefined, onFacts: () => {}, onDigest: () => {} }
    const isSpared = index % 2 === 1
    return questions.ask({ ...ignored, offset: 0, length: 10, isSpared, sink: () => 0 }, object)
  })
  const outcomes = (await Promise.all(answers)).map(({ outcome }) => outcome)
  assert.deepEqual(outcomes, ['ok', 'early', 'ok', 'early', 'ok'])
  assert.deepEqual(asked.together, [
    ['0.bin', '2.bin', '4.bin'],
    ['1.bin', '3.bin'],
  ])
})
