import { parseArgs } from 'node:util'
import { startS3Server } from '../../testing/s3-server.js'
import { openCrashWorld } from './crash-world.js'
import { runRound } from './run-round.js'
import { seededRandom } from './seeded-random.js'

/** Rounds in one world: enough for one crash to meet what another left, few enough to replay soon. */
const ROUNDS_PER_WORLD = 10

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    verbose: { type: 'boolean', default: false },
  },
})
const wanted = Number(values.rounds)
const firstSeed = Number(values.seed)
process.stdout.write(`crash test: ${wanted} rounds with something in flight, --seed ${firstSeed}\n`)

const server = await startS3Server()
const startedMs = Date.now()
let counted = 0
let idle = 0
let failures = 0
for (let seed = firstSeed; counted < wanted && failures < 5; seed++) {
  const random = seededRandom(seed)
  const crash = await openCrashWorld(server, random)
  try {
    for (let number = 0; number < ROUNDS_PER_WORLD && counted < wanted; number++) {
      const { story, inFlight, broken } = await runRound(crash, random, number)
      if (inFlight) counted += 1
      else idle += 1
      if (values.verbose)
        process.stdout.write(
          `seed ${seed} round ${number}: ${story}${inFlight ? '' : ' (nothing in flight)'}\n`,
        )
      if (broken.length === 0) continue
      failures += 1
      process.stdout.write(
        `FAILED seed ${seed} round ${number}: ${story}\n${broken.map((line) => `  ${line}\n`).join('')}`,
      )
      process.stdout.write(
        `  replay: npm run test:crash -- --seed ${seed} --rounds ${ROUNDS_PER_WORLD} --verbose\n`,
      )
      break
    }
  } finally {
    await crash.close()
  }
}
await server.close()
const seconds = Math.round((Date.now() - startedMs) / 1000)
process.stdout.write(
  `${counted} rounds, ${idle} more with nothing in flight, ${failures} failures, ${seconds} s\n`,
)
process.exitCode = failures > 0 || counted < wanted ? 1 : 0
