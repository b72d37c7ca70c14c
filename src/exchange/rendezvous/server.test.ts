import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { fitLink } from '../plan/fit-link.js'
import { probeLink } from '../probe.js'
import { joinExchange } from '../session.js'
import { openRendezvous } from './server.js'

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

test('a rank waits for the others until it is told to stop', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const stop = new AbortController()
  const joining = joinExchange({ rendezvous, plan: { ...PLAN, ranks: 2 }, signal: stop.signal })
  setTimeout(() => stop.abort(), 20)
  await assert.rejects(joining, { code: 'INTERRUPTED' })
  // Its place is free again: two others can meet.
  const pair = [0, 1].map((rank) => joinExchange({ rendezvous, plan: { ...PLAN, ranks: 2 }, rank }))
  for (const session of await Promise.all(pair)) await session.close()
  await rendezvous.close()
})

test('a rendezvous that is gone fails the ranks with its address', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const session = await joinExchange({ rendezvous, plan: PLAN })
  await rendezvous.close()
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.throws(() => session.beginStep(), {
    code: 'PEER_LOST',
    message: /rendezvous at 127\.0\.0\.1:\d+ is gone/,
  })
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
