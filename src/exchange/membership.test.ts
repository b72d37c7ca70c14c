import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openCodec } from '../half/codec.js'
import { listenLocally } from '../testing/listen-locally.js'
import { joinExchange } from './join-exchange.js'
import { makeGradients, meanOf, planOf, runStep, withSessions } from './local-sessions.test.fixture.js'
import { type Membership, openMembership } from './membership.js'
import type { PlanFile } from './plan-files.js'
import { RENDEZVOUS_VERSION } from './rendezvous/messages.js'
import { openRendezvous } from './rendezvous/open-rendezvous.js'

const SHAPES = [[7, 300_000], [1], [5000, 3, 800]]

for (const pauseMs of [0, 30]) {
  test(`a rank that leaves early is named to those who go on ${pauseMs} ms later`, async () => {
    const plan = planOf(3, 'fp32', [[100]])
    await withSessions(plan, 'ring', async (sessions) => {
      await runStep(sessions, makeGradients(plan, 1, 1))
      await sessions[1]!.close()
      await sleep(pauseMs)
      const gradients = makeGradients(plan, 2, 1)
      const results = await Promise.allSettled([
        runStep([sessions[0]!], gradients),
        runStep([sessions[2]!], gradients),
      ])
      for (const result of results) {
        assert.equal(result.status, 'rejected')
        assert.equal(result.reason.name, 'PeerLost')
        assert.equal(result.reason.rank, 1)
        assert.match(result.reason.message, /left after 1 step\b/)
      }
    })
  })
}

test('nothing is written before every rank is ready to commit', async () => {
  const plan = planOf(2, 'fp32', [[100], [3]])
  await withSessions(plan, 'ring', async (sessions) => {
    const gradients = makeGradients(plan, 1, 1)
    const before = gradients.map((rank) => [...rank.values()].map((gradient) => gradient.slice()))
    const steps = sessions.map((session) => session.beginStep())
    for (const [rank, step] of steps.entries()) {
      for (const [name, gradient] of gradients[rank]!) await step.add(name, gradient)
    }
    const first = steps[0]!.commit()
    await sleep(50)
    assert.deepEqual([...gradients[0]!.values()], before[0])
    assert.equal(sessions[0]!.committedSteps(), 0)
    await Promise.all([first, steps[1]!.commit()])
    assert.notDeepEqual([...gradients[0]!.values()], before[0])
    assert.equal(sessions[0]!.committedSteps(), 1)
  })
})

test('survivors repeat a step among themselves in a new epoch, and get their own mean', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const three = planOf(3, 'fp32', [[50]])
  const join = (plan: PlanFile, ranks: readonly number[]) =>
    Promise.all(ranks.map((rank) => joinExchange({ rendezvous, plan, rank })))
  const old = await join(three, [0, 1, 2])
  const gradients = makeGradients(three, 1, 1)
  const steps = [0, 2].map((rank) => {
    const step = old[rank]!.beginStep()
    return step.add('0.0', gradients[rank]!.get('0.0')!).then(() => step.commit())
  })
  const failures = Promise.allSettled(steps)
  await sleep(20)
  await old[1]!.close()
  for (const failure of await failures) assert.equal(failure.status === 'rejected' && failure.reason.rank, 1)
  for (const session of old) await session.close()
  const survivors = await join(planOf(2, 'fp32', [[50]]), [0, 2])
  assert.deepEqual(
    survivors.map(({ rank, epoch }) => [rank, epoch]),
    [
      [0, 2],
      [1, 2],
    ],
  )
  const kept = [gradients[0]!, gradients[2]!]
  const mean = Float32Array.from(meanOf(kept, '0.0'))
  await runStep(survivors, kept)
  for (const rank of kept)
    assert.ok(rank.get('0.0')!.every((value, at) => Math.abs(value - mean[at]!) < 1e-6))
  for (const session of survivors) await session.close()
  await rendezvous.close()
})

test('ranks that were given different plans hear which two differ: who came later fails, who waits is told', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  for (const [other, words] of [
    [planOf(3, 'fp16', SHAPES), /rank 1 .* rank count 3, rank 0 .* has 2/],
    [planOf(2, 'fp32', SHAPES), /rank 1 .* type on the wire fp32, rank 0 .* has fp16/],
    [
      { ...planOf(2, 'fp16', SHAPES), hash: 'other' },
      /rank 1 .* plan other\/ring, rank 0 .* has test-2-fp16/,
    ],
  ] as const) {
    const told = Promise.withResolvers<string>()
    const stop = new AbortController()
    const joins = [planOf(2, 'fp16', SHAPES), other].map((plan, rank) =>
      joinExchange({ rendezvous, plan, rank, onTurnedAway: told.resolve, signal: stop.signal }),
    )
    await assert.rejects(Promise.race(joins), { code: 'EXCHANGE_MISMATCH', message: words })
    assert.match(await told.promise, words)
    stop.abort()
    const codes = (await Promise.allSettled(joins)).map(
      (result) => result.status === 'rejected' && result.reason.code,
    )
    assert.deepEqual(codes.toSorted(), ['EXCHANGE_MISMATCH', 'INTERRUPTED'])
  }
  await rendezvous.close()
})

test('who asks for a rank has it, the others have what is left in the order they came', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const plan = planOf(3, 'fp32', [[10]])
  const joining = [2, undefined, undefined].map((rank) => joinExchange({ rendezvous, plan, rank }))
  const sessions = await Promise.all(joining)
  assert.equal(sessions[0]!.rank, 2)
  assert.deepEqual(sessions.map(({ rank }) => rank).toSorted(), [0, 1, 2])
  for (const session of sessions) await session.close()
  await rendezvous.close()
})

test('when only the link between two ranks breaks, all ranks name that link and the step ends', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const dialled: Socket[] = []
  const onSocket = (message: unknown) => dialled.push((message as { socket: Socket }).socket)
  subscribe('net.client.socket', onSocket)
  const open = (rank: number) =>
    openMembership({
      rendezvous,
      join: { job: 'cut', ranks: 4, wire: 'fp32', planHash: 'x', host: '127.0.0.1', committedSteps: 0, rank },
      mode: 'ring',
      levels: 1,
      openCodec: () => openCodec(2 << 20),
      progress: () => ({ step: 0, bucket: 1, phase: 'reduce', isInStep: true, waiting: undefined }),
      onSuspect: () => {},
      onTurnedAway: () => {},
      signal: undefined,
    })
  const members = await Promise.all([0, 1, 2, 3].map(open))
  unsubscribe('net.client.socket', onSocket)
  // In a ring only rank 3 dials rank 2.
  const port = members[0]!.welcome.peers[2]!.port
  const links = dialled.filter((socket) => socket.remotePort === port)
  assert.equal(links.length, 1)
  links[0]!.destroy()
  try {
    // One waits for a step that never completes, the others for the failure.
    const waits = [members[0]!.agree(1), ...members.slice(1).map(failureOf)]
    for (const [rank, result] of (await Promise.allSettled(waits)).entries()) {
      assert.equal(result.status, 'rejected')
      assert.equal(result.reason.name, 'LinkLost')
      assert.equal(result.reason.code, 'PEER_LOST')
      assert.deepEqual(result.reason.ranks, [2, 3])
      assert.match(
        result.reason.message,
        /^link 2–3 between 127.0.0.1 and 127.0.0.1 .* step 0, bucket 1, reduce:/,
      )
      assert.throws(() => members[rank]!.check(), { name: 'LinkLost' })
    }
  } finally {
    for (const member of members) member.close(0)
    await rendezvous.close()
  }
})

async function failureOf(member: Membership): Promise<void> {
  for (;;) {
    member.check()
    await sleep(20)
  }
}

test('a rank that is one step ahead is a mismatch that names both, and gradients stay as they were', async () => {
  const plan = planOf(2, 'fp16', [[100]])
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const sessions = await Promise.all(
    [0, 1].map((rank) => joinExchange({ rendezvous, plan, rank, committedSteps: rank === 0 ? 4 : 5 })),
  )
  const gradients = makeGradients(plan, 1, 1)
  const before = gradients.map((rank) => rank.get('0.0')!.slice())
  const results = await Promise.allSettled(
    sessions.map(async (session, rank) => {
      const step = session.beginStep()
      await step.add('0.0', gradients[rank]!.get('0.0')!)
      await step.commit()
    }),
  )
  for (const result of results) {
    assert.equal(result.status, 'rejected')
    assert.equal(result.reason.code, 'EXCHANGE_MISMATCH')
    assert.match(result.reason.message, /rank [01] sent step [45], rank [01] expected [45]/)
  }
  assert.deepEqual(
    gradients.map((rank) => rank.get('0.0')),
    before,
  )
  for (const session of sessions) await session.close()
  await rendezvous.close()
})

test('a rank to which another one never connects is not the one that is lost', async (t) => {
  const patience = { suspectAfterMs: 1500, lostAfterMs: 2500 }
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, patience, nowMs: Date.now })
  t.after(() => rendezvous.close())
  const plan = planOf(2, 'fp32', [[100]])
  const joining = joinExchange({ rendezvous, plan, rank: 0, job: 'deaf' })
  // The other rank joins, is alive and reachable, but its connection to the first one is blocked.
  const ear = createServer(() => {})
  const port = await listenLocally(ear)
  const other = connect(rendezvous)
  const say = (message: object) => other.write(`${JSON.stringify(message)}\n`)
  const place = { host: '127.0.0.1', port: port, committedSteps: 0 }
  const { hash, ranks, wire } = plan
  say({
    kind: 'join',
    version: RENDEZVOUS_VERSION,
    job: 'deaf',
    ranks,
    rank: 1,
    wire,
    planHash: `${hash}/ring`,
    ...place,
  })
  const beats = setInterval(() => say({ kind: 'beat', step: 0 }), 300)
  t.after(() => {
    clearInterval(beats)
    other.destroy()
    ear.close()
  })
  await assert.rejects(joining, { name: 'PeerLost', rank: 1, message: /rank 1 .*makes no progress/ })
})
