// A simulated day in half an hour, and less in less: jobs on three nodes while everything goes wrong, and code that shares nothing with
// the product but its formats looks on. Needs root, for disks of its own; libfaketime, for clocks that step.
// Usage: npm run test:soak -- [--minutes 30] [--seed N] [--jobs N]

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { seededRandom } from '../crash/seeded-random.js'
import { carryOutEvent, resourceOf } from './carry-out-event.js'
import { checkSettled, checkWorld } from './check-world.js'
import { Findings } from './findings.js'
import { Gate } from './gate.js'
import { NODES, planSoak, simulatedHours } from './plan-soak.js'
import { JobRunner } from './run-job.js'
import { makeSoakWorld, type SoakWorld } from './soak-world.js'
import { MemoryWatch } from './watch-memory.js'

const CHECK_EVERY_MS = 1500
/** A young process grows: only long runs are judged by their memory. */
const MINUTES_TO_JUDGE = 15
/** Jobs at once; later ones wait for their turn. */
const MAX_JOBS = 6

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    jobs: { type: 'string' },
  },
})
const minutes = Number(values.minutes)
const seed = Number(values.seed)
const jobs = Number(values.jobs ?? Math.round((minutes * 1000) / 30))
const replay = `npm run test:soak -- --seed ${seed} --minutes ${minutes} --jobs ${jobs}`
const ends: (() => unknown)[] = []
const findings = new Findings((line) => process.stdout.write(line))
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => void close().then(() => process.exit(1)))
try {
  const world = await makeSoakWorld({ after: (end: unknown) => void ends.unshift(end as () => unknown) })
  findings.tell(`${replay}${world.clocks.canStep ? '' : ' (no libfaketime: clocks do not step)'}`)
  await soak(world)
} finally {
  await close()
}
for (const [what, count] of [...findings.counts].toSorted()) process.stdout.write(`${what}: ${count}\n`)
process.stdout.write(`${findings.broken.length} broken\n`)
if (findings.broken.length > 0) process.stdout.write(`replay: ${replay}\n`)
process.exitCode = findings.broken.length > 0 ? 1 : 0

async function soak(world: SoakWorld): Promise<void> {
  const plan = planSoak(seededRandom(seed), { minutes, jobs })
  const runner = new JobRunner(world, findings)
  const memory = new MemoryWatch()
  const gate = new Gate(MAX_JOBS)
  const startedMs = performance.now()
  let settlingMs = 0 // the plan stands still meanwhile
  const until = async (atMs: number) => {
    for (let leftMs = 1; leftMs > 0; await sleep(Math.min(500, leftMs)))
      leftMs = Math.max(0, atMs + settlingMs - (performance.now() - startedMs))
  }
  let isOver = false
  const watching = (async () => {
    for (let isHalved = false; !isOver; await sleep(CHECK_EVERY_MS)) {
      if (!isHalved && performance.now() - startedMs > minutes * 30_000) {
        isHalved = true
        memory.halve()
      }
      memory.sample(new Map(NODES.map((node) => [`agent of ${node}`, world.agents.get(node)?.process.pid])))
      await checkWorld(world, runner.holds, findings)
    }
  })()
  const working = (async () => {
    const running: Promise<void>[] = []
    for (const { atMs, job } of plan.jobs) {
      await until(atMs)
      await gate.enter()
      running.push(runner.run(job).finally(() => gate.leave()))
    }
    await Promise.all(running)
  })()
  const turns = new Map<string, Promise<void>>()
  const happening: Promise<void>[] = []
  for (const { atMs, event } of plan.events) {
    await until(atMs)
    if (event.kind === 'settle') {
      await Promise.all(happening.splice(0))
      const beganMs = performance.now()
      await gate.whileNobodyIsIn(() => settle(world))
      settlingMs += performance.now() - beganMs
      findings.count('settled')
      continue
    }
    const resource = resourceOf(event)
    const turn = (turns.get(resource) ?? Promise.resolve()).then(() => carryOutEvent(world, event, findings))
    turns.set(resource, turn)
    happening.push(turn)
  }
  await working
  await Promise.all(happening)
  await settle(world)
  await requireDay(world)
  isOver = true
  await watching
  for (const { line, isGrowing } of memory.judge()) {
    findings.tell(line)
    if (isGrowing && minutes >= MINUTES_TO_JUDGE) findings.fail(`memory grows: ${line}`)
  }
}

/** Nobody works: all nodes clean up, and nothing may be left over. */
async function settle(world: SoakWorld): Promise<void> {
  for (const node of NODES) {
    const words = ['cleanup', '--abandoned-after', '0s']
    let finished = await world.nodeOf(node).dsc(...words)
    for (let attempt = 0; finished.code !== 0 && attempt < 5; attempt++) {
      await sleep(1000)
      finished = await world.nodeOf(node).dsc(...words)
    }
    if (finished.code !== 0) findings.fail(`${node}: cleanup ended with ${finished.code}: ${finished.stderr}`)
  }
  await checkSettled(world, findings)
}

/** The clocks were stepped from outside: whether anybody noticed has to be looked at. */
async function requireDay({ clocks, database }: SoakWorld): Promise<void> {
  const { rows } = await database.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
  const hours = (Number(rows[0].now) - Date.now()) / 3_600_000
  findings.tell(`the clock of the record is ${hours.toFixed(1)} hours ahead`)
  // Single clocks are set back now and then.
  if (clocks.canStep && hours < 0.8 * simulatedHours(minutes))
    findings.fail('the clock of the record did not step')
}

async function close(): Promise<void> {
  for (const end of ends.splice(0)) await end()
}
