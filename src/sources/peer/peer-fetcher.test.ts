import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { Urgency } from '../../model/urgency.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { NO_WAIT_HEADER, NODE_HEADER, URGENCY_HEADER } from '../peer-wire.js'
import type { Fetcher } from '../source.js'
import { PeerFetcher } from './peer-fetcher.js'
import { PeerReport } from './peer-report.js'
import { planProviders, type Stager } from './plan-providers.js'

const NAMES = ['a', 'b', 'c', 'd', 'e']
const NODE = 'a'
/** An object that this node takes from a node that takes it from a third. */
const KEY = Array.from({ length: 100 }, (_, index) => `${index}.bin`).find(
  (key) => askedOf(key).length === 2,
)!

function askedOf(key: string, isWanted = false): readonly string[] {
  const stagers = NAMES.map((node) => ({ node, url: '', isStaging: true, mayHave: false }))
  return planProviders({ ready: [], stagers }, { node: NODE, key, offset: 0, isWanted }).map(
    ({ provider }) => provider.node,
  )
}

async function serve(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  const port = await listenLocally(server, t)
  return `http://127.0.0.1:${port}`
}

/** Opens this node's fetcher; the first node it asks for `KEY` is at the URL `giver`, all others at `other`. */
function openFetcher(
  t: TestContext,
  options: {
    readonly giver: string
    readonly other: string
    readonly isWanted: boolean
    readonly nowMs: () => number
  },
): PeerFetcher {
  const { giver, other, isWanted, nowMs } = options
  const [first] = askedOf(KEY, isWanted)
  const stagers = NAMES.map((node) => ({
    ...{ node, url: node === first ? giver : other },
    ...{ isStaging: true, mayHave: false },
  }))
  const openOrigin = () => Promise.reject(new Error('the store is not to be asked'))
  return openFetcherAmong(t, { node: NODE, stagers, openOrigin, nowMs })
}

function openFetcherAmong(
  t: TestContext,
  options: {
    readonly node: string
    readonly stagers: readonly Stager[]
    readonly openOrigin: () => Promise<Fetcher>
    readonly nowMs?: () => number
  },
): PeerFetcher {
  const { node, stagers, openOrigin, nowMs = () => performance.now() } = options
  const fetcher = new PeerFetcher({
    node,
    dataset: { name: 'flowers', source: 's3://bucket/flowers/' },
    access: { token: undefined, ca: undefined },
    trustsNodes: false,
    connections: 1,
    report: new PeerReport(),
    nowMs,
    home: {
      findProviders: () => ({ ready: [], stagers }),
      take: () => Promise.resolve(true),
      onDamage: () => Promise.resolve(),
      openOriginFetcher: openOrigin,
    },
  })
  t.after(() => fetcher.close())
  return fetcher
}

/**
 * Counts how often the giver, which never has it, is asked before another node is, and whether that one may refuse. The
 * giver holds each request for `heldMs`; the other refuses at first if it may.
 */
async function countQuestions(
  t: TestContext,
  { urgency, heldMs }: { readonly urgency: Urgency; readonly heldMs: number },
): Promise<{ readonly questions: number; readonly mayRefuse: boolean }> {
  let nowMs = 1_000_000
  let questions = 0
  const giver = await serve(t, (_, response) => {
    questions += 1
    nowMs += heldMs
    response.writeHead(425, { [NODE_HEADER]: 'giver' }).end()
  })
  let mayRefuse = false
  const other = await serve(t, (request, response) => {
    const isRefused = !mayRefuse && request.headers[URGENCY_HEADER] === 'listed'
    mayRefuse ||= isRefused
    if (isRefused) response.writeHead(425, { [NODE_HEADER]: 'other' }).end()
    else response.writeHead(206, { [NODE_HEADER]: 'other' }).end('x')
  })
  const fetcher = openFetcher(t, { giver, other, isWanted: urgency === 'wanted', nowMs: () => nowMs })
  const part = { offset: 0, length: 1 }
  const object = { key: KEY, sizeBytes: 2, etag: null, versionId: null }
  await fetcher.fetch({ ...object, ...part, urgency, stallTimeoutMs: 9000, sink: () => 0, signal: t.signal })
  return { questions, mayRefuse }
}

for (const { what, urgency, heldMs, ...expected } of [
  {
    what: 'is left to its giver for half a minute',
    urgency: 'listed',
    heldMs: 8000,
    questions: 5,
    mayRefuse: true,
  },
  {
    what: 'is asked for elsewhere when its giver does not hold the question',
    urgency: 'listed',
    heldMs: 100,
    questions: 2,
    mayRefuse: true,
  },
  {
    what: 'is asked for elsewhere where it is ordered',
    urgency: 'ordered',
    heldMs: 8000,
    questions: 1,
    mayRefuse: false,
  },
  {
    what: 'is asked for elsewhere where it is wanted',
    urgency: 'wanted',
    heldMs: 8000,
    questions: 1,
    mayRefuse: false,
  },
] as const)
  test(`a part that its giver does not have yet ${what}`, async (t) => {
    assert.deepEqual(await countQuestions(t, { urgency, heldMs }), expected)
  })

test('a part that becomes wanted between two questions is asked for as such by the next', async (t) => {
  let nowMs = 1_000_000
  const held: (string | undefined)[] = []
  const hold = (request: IncomingMessage, response: ServerResponse) => {
    nowMs += 400 // the next node asked in this round need not hold the question
    held.push(request.headers[URGENCY_HEADER] as string | undefined)
    const isSecond = held.length > 1
    response.writeHead(isSecond ? 206 : 425, { [NODE_HEADER]: 'some' }).end(isSecond ? 'x' : '')
  }
  const giver = await serve(t, hold)
  const other = await serve(t, (request, response) => {
    if (held.length > 1 || request.headers[NO_WAIT_HEADER] === undefined) return hold(request, response)
    fetcher.hurry(KEY)
    response.writeHead(425, { [NODE_HEADER]: 'other' }).end()
  })
  const fetcher = openFetcher(t, { giver, other, isWanted: false, nowMs: () => nowMs })
  const object = { key: KEY, sizeBytes: 2, etag: null, versionId: null, offset: 0, length: 1 }
  await fetcher.fetch({
    ...object,
    urgency: 'ordered',
    stallTimeoutMs: 9000,
    sink: () => 0,
    signal: t.signal,
  })
  assert.deepEqual(held, ['ordered', 'wanted'])
})

for (const { heldMs, isHeldAgain } of [
  { heldMs: 10, isHeldAgain: true },
  { heldMs: 8000, isHeldAgain: false },
])
  test(`a giver that had nothing after ${heldMs} ms, where another had it, is ${isHeldAgain ? '' : 'not '}waited for again`, async (t) => {
    let nowMs = 1_000_000
    const isHeld: boolean[] = []
    const giver = await serve(t, (request, response) => {
      isHeld.push(request.headers[NO_WAIT_HEADER] === undefined)
      nowMs += heldMs
      response.writeHead(425, { [NODE_HEADER]: 'giver' }).end()
    })
    const other = await serve(t, (_, response) =>
      response.writeHead(206, { [NODE_HEADER]: 'other' }).end('x'),
    )
    const fetcher = openFetcher(t, { giver, other, isWanted: true, nowMs: () => nowMs })
    const object = { key: KEY, sizeBytes: 2, etag: null, versionId: null, length: 1 }
    const rest = { urgency: 'wanted', stallTimeoutMs: 9000, sink: () => 0, signal: t.signal } as const
    for (const offset of [0, 1]) await fetcher.fetch({ ...object, offset, ...rest })
    assert.deepEqual(isHeld, [true, isHeldAgain])
  })

for (const { nodes, failing, least, most, isFromStore } of [
  { nodes: 2, failing: 1, least: 2, most: 2, isFromStore: false },
  { nodes: 3, failing: 2, least: 3, most: 3, isFromStore: false },
  { nodes: 2, failing: 2, least: 2, most: 2, isFromStore: true },
  { nodes: 12, failing: 12, least: 3, most: 6, isFromStore: true },
])
  test(`where ${failing} of ${nodes} nodes fail, a part comes from ${isFromStore ? 'the store after a few' : 'the next'}`, async (t) => {
    const stagers = Array.from({ length: nodes }, (_, index) => ({ node: `n${index}`, mayHave: false }))
    const asked: string[] = []
    const served = await Promise.all(
      stagers.map(async (stager) => {
        const url = await serve(t, (_, response) => {
          asked.push(stager.node)
          const isFailure = asked.length <= failing
          response.writeHead(isFailure ? 500 : 206, { [NODE_HEADER]: stager.node })
          response.end(isFailure ? '' : 'x')
        })
        return { ...stager, url, isStaging: true }
      }),
    )
    let isAtStore = false
    const origin: Fetcher = {
      fetch: async () => {
        isAtStore = true
      },
      inspect: () => Promise.reject(new Error('not asked')),
      close: () => Promise.resolve(),
    }
    // This node is not among them, so that each of them gets the part before it.
    const fetcher = openFetcherAmong(t, {
      node: 'z',
      stagers: served,
      openOrigin: () => Promise.resolve(origin),
    })
    const object = { key: KEY, sizeBytes: 2, etag: null, versionId: null, offset: 0, length: 1 }
    await fetcher.fetch({ ...object, stallTimeoutMs: 9000, sink: () => 0, signal: t.signal })
    assert.equal(new Set(asked).size, asked.length, 'nobody twice')
    assert.ok(asked.length >= least && asked.length <= most, `${asked.length} were asked`)
    assert.equal(isAtStore, isFromStore)
  })
