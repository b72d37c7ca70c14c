import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { startPostgresServer } from '../../testing/postgres-server.js'
import { startS3Server } from '../../testing/s3-server.js'
import { CrashCoverage } from './crash-steps.js'
import { openCrashWorld } from './crash-world.js'
import { runDoorRound } from './run-door-round.js'
import { type Round, runRound } from './run-round.js'
import { seededRandom } from './seeded-random.js'

/** Rounds in one world: enough for one crash to meet what another left, few enough to replay soon. */
const ROUNDS_PER_WORLD = 10
/** From so many rounds on, every step of every operation must have been died at. */
const ROUNDS_FOR_ALL_STEPS = 500
/** From so many killed services on, one must have had objects. */
const SERVICES_FOR_OBJECTS = 20

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    record: { type: 'string', default: 'sqlite' },
    worlds: { type: 'string', default: String(Math.min(4, availableParallelism())) },
    door: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
})
const wanted = Number(values.rounds)
const worlds = Number(values.worlds)
const firstSeed = Number(values.seed)
process.stdout.write(
  `crash test: ${wanted} rounds with something in flight, --seed ${firstSeed} --record ${values.record}\n`,
)

const server = await startS3Server()
const postgres = values.record === 'postgres' ? await startPostgresServer() : undefined
const coverage = new CrashCoverage()
const startedMs = Date.now()
let counted = 0
let idle = 0
let failures = 0
let services = 0
let arrived = 0
const arriving = { objects: 0, ranges: 0 }
let nextSeed = firstSeed
const isDone = () => counted >= wanted || failures >= 5

/** One world per seed, each with ten rounds. */
async function runWorlds(): Promise<void> {
  while (!isDone()) await runWorld(nextSeed++)
}

async function runWorld(seed: number): Promise<void> {
  const random = seededRandom(seed)
  const crash = await openCrashWorld(server, postgres, random)
  try {
    for (let number = 0; number < ROUNDS_PER_WORLD && !isDone(); number++) {
      const turn = seed * ROUNDS_PER_WORLD + number
      const isSound = values.door
        ? await runOne(seed, number, () => runDoorRound(crash, random, { number, turn }))
        : await runOne(seed, number, () => runRound(crash, random, { number, turn, coverage }))
      if (!isSound) return
    }
    const last = { number: ROUNDS_PER_WORLD, turn: seed }
    if (!values.door) await runOne(seed, ROUNDS_PER_WORLD, () => runDoorRound(crash, random, last))
  } finally {
    await crash.close()
  }
}

/** Counts a round and says what it did. Returns false if it has broken something. */
async function runOne(seed: number, number: number, run: () => Promise<Round>): Promise<boolean> {
  const { story, inFlight, arrivingReads: reads, arrived: kept = 0, broken } = await run()
  arrived += kept
  arriving.objects += reads.objects
  arriving.ranges += reads.ranges
  if (inFlight && story.includes('at the door')) services += 1
  if (inFlight) counted += 1
  else idle += 1
  if (values.verbose)
    process.stdout.write(`seed ${seed} round ${number}: ${story}${inFlight ? '' : ' (nothing in flight)'}\n`)
  if (broken.length === 0) return true
  failures += 1
  process.stdout.write(
    `FAILED seed ${seed} round ${number}: ${story}\n${broken.map((line) => `  ${line}\n`).join('')}`,
  )
  process.stdout.write(
    `  replay: npm run test:crash -- --seed ${seed} --worlds 1 --rounds ${ROUNDS_PER_WORLD} --record ${values.record} ${values.door ? '--door ' : ''}--verbose\n`,
  )
  return false
}

await Promise.all(Array.from({ length: worlds }, runWorlds))
await server.close()
await postgres?.close()
const seconds = Math.round((Date.now() - startedMs) / 1000)
process.stdout.write(`died at, operation by operation:\n${coverage.format()}`)
const missing = wanted >= ROUNDS_FOR_ALL_STEPS && !values.door ? coverage.missing() : []
for (const step of missing) process.stdout.write(`never died at ${step}\n`)
process.stdout.write(
  `${counted} rounds, ${idle} more with nothing in flight, ${arriving.objects} reads of arriving objects and ${arriving.ranges} of ranges, ${services} services killed with ${arrived} objects, ${failures} failures, ${seconds} s\n`,
)
const isVain = services >= SERVICES_FOR_OBJECTS && arrived === 0
if (isVain)
  process.stdout.write('no service was killed when it had objects: nothing could be fetched twice\n')
process.exitCode = failures > 0 || counted < wanted || missing.length > 0 || isVain ? 1 : 0
