import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { waitFor } from '../../testing/world.js'
import { joinExchange } from '../join-exchange.js'
import { fitLink } from '../plan/fit-link.js'
import { probeLink } from '../probe.js'
import { RENDEZVOUS_VERSION } from './messages.js'
import { openRendezvous, type Rendezvous } from './open-rendezvous.js'

const PLAN = {
  hash: 'x',
  ranks: 1,
  wire: 'fp32' as const,
  buckets: [{ tensors: [{ name: 'a', elements: 8 }] }],
}

test('a rendezvous with a token lets nobody else join or probe', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, token: 'right', nowMs: Date.now })
  for (const token of [undefined, 'wrong', 'righ']) {
    await assert.rejects(joinExchange({ rendezvous, plan: PLAN, token }), {
      code: 'USAGE',
      message: /another token/,
    })
    await assert.rejects(probeLink(rendezvous, { token }), { code: 'USAGE', message: /another token/ })
  }
  const session = await joinExchange({ rendezvous, plan: PLAN, token: 'right' })
  await session.close()
  await rendezvous.close()
})

test('whatever is not a message ends its own connection and nothing else', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  for (const words of [
    'GET / HTTP/1.1\r\n\r\n',
    '{"kind":"beat"}\n',
    '[1,2]\n',
    '{"kind":"join","version":1}\n',
  ]) {
    const socket = connect(rendezvous)
    socket.on('error', () => {})
    socket.write(words)
    await once(socket, 'close')
  }
  const session = await joinExchange({ rendezvous, plan: PLAN })
  assert.equal(session.epoch, 1)
  await session.close()
  await rendezvous.close()
})

test('beyond loopback a rendezvous needs a token, and a name that begins with 127 is beyond it', async () => {
  for (const host of ['0.0.0.0', '127.example.org'])
    for (const token of [undefined, ''])
      await assert.rejects(openRendezvous({ host, port: 0, token, nowMs: Date.now }), {
        code: 'USAGE',
        message: /no token is set/,
      })
})

/**
 * A rank that speaks the protocol by hand. Resolves when the rendezvous has handled its line: a probe after it is
 * answered.
 */
async function joinByHand(rendezvous: Rendezvous, join: object) {
  const socket = connect(rendezvous)
  const version = RENDEZVOUS_VERSION
  const place = {
    job: 'job',
    ranks: 2,
    wire: 'fp32',
    planHash: 'x',
    host: 'gpu-1',
    port: 1,
    committedSteps: 0,
  }
  socket.write(`${JSON.stringify({ kind: 'join', version, ...place, ...join })}\n`)
  socket.write(`${JSON.stringify({ kind: 'probe', version })}\n`)
  socket.write(Buffer.alloc(4)) // a probe of no bytes
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
  })
  const ANSWER = '\x01'
  while (!text.includes(ANSWER)) await once(socket, 'data')
  text = text.replace(ANSWER, '')
  /** The next message, of any kind. */
  const next = async () => {
    while (!text.includes('\n')) await once(socket, 'data')
    const [line = ''] = text.split('\n', 1)
    text = text.slice(line.length + 1)
    return JSON.parse(line) as { kind: string; message: string }
  }
  return { socket, next }
}

test('a stranger who does not fit is turned away, and the ranks that wait hear of it and meet the others', async (t) => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  t.after(() => rendezvous.close())
  const first = await joinByHand(rendezvous, { rank: 0 })
  for (const { misfit, words } of [
    { misfit: { ranks: 3 }, words: 'the rank at gpu-1:1 has rank count 3, rank 0 on gpu-1 has 2' },
    { misfit: { planHash: 'y' }, words: 'the rank at gpu-1:1 has plan y, rank 0 on gpu-1 has x' },
    { misfit: { rank: 0 }, words: 'two ranks call themselves 0: gpu-1:1 and gpu-1:1' },
  ]) {
    const stranger = await joinByHand(rendezvous, misfit)
    const refusal = await stranger.next()
    stranger.socket.destroy()
    assert.deepEqual(refusal, { kind: 'refused', reason: 'mismatch', message: words })
    assert.deepEqual(await first.next(), { kind: 'turnedAway', message: words })
  }
  const second = await joinByHand(rendezvous, { rank: 1 })
  assert.deepEqual([(await first.next()).kind, (await second.next()).kind], ['welcome', 'welcome'])
})

test('ranks that name no job are in that of their user', async (t) => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  t.after(() => rendezvous.close())
  const plan = { ...PLAN, ranks: 2 }
  const job = `user-${process.getuid!()}`
  const pair = [joinExchange({ rendezvous, plan, job }), joinExchange({ rendezvous, plan })]
  for (const session of await Promise.all(pair)) await session.close()
})

test('a rank waits for the others until it is told to stop', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const stop = new AbortController()
  const joining = joinExchange({ rendezvous, plan: { ...PLAN, ranks: 2 }, signal: stop.signal })
  setTimeout(() => stop.abort(), 20)
  await assert.rejects(joining, { code: 'INTERRUPTED' })
  const late = joinExchange({ rendezvous, plan: { ...PLAN, ranks: 2 }, signal: stop.signal })
  await assert.rejects(late, { code: 'INTERRUPTED' })
  // Its place is free again: two others can meet.
  const pair = [0, 1].map((rank) => joinExchange({ rendezvous, plan: { ...PLAN, ranks: 2 }, rank }))
  for (const session of await Promise.all(pair)) await session.close()
  await rendezvous.close()
})

test('a rendezvous that is gone fails the ranks with its address', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const session = await joinExchange({ rendezvous, plan: PLAN })
  await rendezvous.close()
  const failure = await waitFor('the session to hear of it', () => {
    try {
      session.beginStep()
      return undefined
    } catch (error) {
      return error
    }
  })
  assert.ok(isDscError(failure, 'PEER_LOST'), String(failure))
  assert.match(failure.message, /rendezvous at 127\.0\.0\.1:\d+ is gone/)
  await session.close()
  await assert.rejects(joinExchange({ rendezvous, plan: PLAN }), {
    code: 'PEER_LOST',
    message: /does not answer/,
  })
})

test('probes of loopback give a latency and a bandwidth', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const probes = await probeLink(rendezvous, { sizeBudgetMs: 30 })
  const link = fitLink(probes)
  assert.ok(link.alphaSeconds > 0 && link.alphaSeconds < 1, `${link.alphaSeconds}`)
  assert.ok(link.bandwidthBytesPerSecond > 1e6, `${link.bandwidthBytesPerSecond}`)
  await rendezvous.close()
})
