import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FaultRankOptions, FaultReport } from './fault-rank.test.worker.js'
import { DEFAULT_PATIENCE, type Patience } from './plan/suspect.js'
import { openRendezvous, type Rendezvous } from './rendezvous/open-rendezvous.js'

const RANKS = 4
/** `npm run test:exchange-faults` asks for 50 kills and for the patience that users get. */
const KILLS = Number(process.env.DSC_TEST_KILLS ?? 3)
const PATIENCE: Patience = KILLS >= 50 ? DEFAULT_PATIENCE : { suspectAfterMs: 2500, lostAfterMs: 4000 }
const WORKER = fileURLToPath(new URL('./fault-rank.test.worker.js', import.meta.url))

/** How ranks exchange in a test. */
type Way = Pick<FaultRankOptions, 'levels' | 'wire'>

const WAYS: readonly (Way & { readonly name: string })[] = [
  { name: 'one level', levels: 1, wire: 'fp16' },
  { name: 'two levels', levels: 2, wire: 'fp16' },
  { name: 'int8', levels: 1, wire: 'int8' },
  { name: 'int8 in two levels', levels: 2, wire: 'int8' },
]

interface Rank {
  readonly process: ChildProcess
  /** The next report of this kind; earlier ones count unless they were taken. */
  readonly next: <K extends FaultReport['kind']>(kind: K) => Promise<Extract<FaultReport, { kind: K }>>
}

function startRank(options: FaultRankOptions): Rank {
  const child = fork(WORKER, [JSON.stringify(options)])
  const reports: FaultReport[] = []
  child.on('message', (message) => reports.push(message as FaultReport))
  return {
    process: child,
    async next<K extends FaultReport['kind']>(kind: K) {
      for (;;) {
        const at = reports.findIndex((report) => report.kind === kind)
        if (at !== -1) return reports.splice(at, 1)[0] as Extract<FaultReport, { kind: K }>
        await once(child, 'message')
      }
    },
  }
}

async function withRanks(
  { patience, levels, wire }: Way & { readonly patience: Patience },
  body: (ranks: Rank[], rendezvous: Rendezvous) => Promise<void>,
): Promise<void> {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, patience, nowMs: Date.now })
  const { port } = rendezvous
  const ranks = Array.from({ length: RANKS }, (_, rank) =>
    startRank({ rank, ranks: RANKS, port, committedSteps: 0, levels, wire }),
  )
  try {
    await body(ranks, rendezvous)
  } finally {
    for (const rank of ranks) rank.process.kill('SIGKILL')
    await rendezvous.close()
  }
}

for (const { name, ...way } of WAYS)
  test(`${name}: SIGKILL of a rank at ${KILLS} random moments: every survivor names it within 1 s, no gradient is half-written, and they go on with a new one`, async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    console.log(`seed ${seed}`)
    let state = seed
    const random = (limit: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0
      return (state >>> 8) % limit
    }
    const delays: number[] = []
    const seen = { untouched: 0, complete: 0 }
    await withRanks({ patience: DEFAULT_PATIENCE, ...way }, async (ranks, { port }) => {
      for (let kill = 0; kill < KILLS; kill++) {
        const joined = await Promise.all(ranks.map((rank) => rank.next('joined')))
        for (const { epoch } of joined) assert.equal(epoch, kill + 1)
        await sleep(random(120))
        const victim = random(RANKS)
        const killedMs = Date.now()
        ranks[victim]!.process.kill('SIGKILL')
        const survivors = ranks.filter((_, rank) => rank !== victim)
        const failures = await Promise.all(survivors.map((rank) => rank.next('failed')))
        for (const failure of failures) {
          assert.equal(failure.name, 'PeerLost', failure.message)
          assert.equal(failure.lostRank, victim, failure.message)
          assert.doesNotMatch(failure.message, /no heartbeat/, 'its closed connections tell, not its silence')
          assert.notEqual(failure.gradients, 'mixed')
          if (failure.gradients !== 'mixed') seen[failure.gradients]++
          assert.equal(
            failure.committedSteps,
            failures[0]!.committedSteps,
            'survivors differ in committed steps',
          )
          delays.push(failure.atMs - killedMs)
        }
        ranks[victim] = startRank({
          rank: victim,
          ranks: RANKS,
          port,
          committedSteps: failures[0]!.committedSteps,
          ...way,
        })
      }
    })
    delays.sort((a, b) => a - b)
    console.log(`named after ${delays[delays.length >> 1]} ms, at most ${delays.at(-1)} ms`, seen)
  })

for (const { name, ...way } of WAYS.slice(0, 2))
  test(`${name}: a frozen rank is named as suspect after ${PATIENCE.suspectAfterMs} ms and lost at ${PATIENCE.lostAfterMs} ms`, async () => {
    await withRanks({ patience: PATIENCE, ...way }, async (ranks) => {
      await Promise.all(ranks.map((rank) => rank.next('joined')))
      await sleep(50)
      const frozenMs = Date.now()
      ranks[2]!.process.kill('SIGSTOP')
      const others = ranks.filter((_, rank) => rank !== 2)
      for (const suspect of await Promise.all(others.map((rank) => rank.next('suspect')))) {
        assert.equal(suspect.rank, 2)
        assert.ok(suspect.atMs - frozenMs >= PATIENCE.suspectAfterMs - 1100, `${suspect.atMs - frozenMs} ms`)
      }
      for (const failure of await Promise.all(others.map((rank) => rank.next('failed')))) {
        assert.equal(failure.lostRank, 2)
        assert.match(failure.message, /no heartbeat/)
        assert.ok(failure.atMs - frozenMs >= PATIENCE.lostAfterMs - 1100, `${failure.atMs - frozenMs} ms`)
        assert.notEqual(failure.gradients, 'mixed')
      }
    })
  })
