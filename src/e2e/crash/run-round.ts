import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FAILURES } from '../../failure/dsc-error.js'
import type { Finished, Running } from '../world.js'
import { findBroken, fingerprint } from './check-invariants.js'
import type { CrashWorld } from './crash-world.js'
import { KILL_MOMENTS } from './kill-moments.js'
import { chooseOperation, type Operation } from './operations.js'
import type { Random } from './seeded-random.js'

/** What a round did. `inFlight`: something was killed that had begun to change record or disk. */
export interface Round {
  readonly story: string
  readonly inFlight: boolean
  readonly broken: readonly string[]
}

interface Started extends Running {
  readonly operation: Operation
  ended?: Finished
}

const LONGEST_OPERATION_MS = 120_000

/** Starts up to three commands at once, kills some or all at a random moment, and checks what is left. */
export async function runRound(crash: CrashWorld, random: Random, number: number): Promise<Round> {
  const { world, proxy, outside } = crash
  proxy.setRules(
    random.chance(0.8) ? [{ match: '^GET .*bin', fault: { kind: 'delay', delayMs: random.below(60) } }] : [],
  )
  const operations: Operation[] = []
  for (let index = random.pick([1, 1, 2, 3]); index > 0; index--)
    operations.push(await chooseOperation(crash, random, number * 10 + index, operations.length === 0))
  const before = observe(crash)
  const outsideBefore = fingerprint(outside)
  const started = operations.map((operation): Started => {
    operation.before?.()
    const running: Started = { ...world.start(operation.words, { detached: true }), operation }
    void running.finished.then((ended) => {
      running.ended = ended
    })
    return running
  })
  const moment = random.chance(0.5) ? random.pick(KILL_MOMENTS) : undefined
  const waitMs = 180 + random.below(450)
  const when = moment ? moment.name : `after ${waitMs} ms`
  const endMs = Date.now() + waitMs
  // A moment that does not come in this round is replaced by a time.
  while (Date.now() < endMs && started.some(({ ended }) => !ended) && !moment?.isNow(world))
    await sleep(moment ? 1 : 5)
  if (moment) await sleep(random.pick([0, 0, 5, 30]))
  const isPartial = random.chance(0.25)
  const victims = started.filter(({ ended }, index) => !ended && !(isPartial && index === 0))
  for (const { process: child } of victims) killGroup(child.pid!)
  const ends = await Promise.all(started.map((running) => finish(running)))
  const killed = ends.filter(({ signal }) => signal === 'SIGKILL').length
  const story = `${operations.map(({ words }) => words.join(' ')).join(' + ')}; ${killed} killed, ${when}`
  const broken = ends.flatMap(({ signal, code, stderr }, index) =>
    signal === null && isCrash(code, stderr)
      ? [`${operations[index]!.words.join(' ')} ended with ${code}: ${stderr}`]
      : [],
  )
  const inFlight = killed > 0 && observe(crash) !== before
  for (const [index, { code }] of ends.entries()) if (code === 0) operations[index]!.onSuccess?.()
  broken.push(...findBroken(crash, false).map((problem) => `right after: ${problem}`))
  broken.push(...findChanges(outsideBefore, fingerprint(outside)))
  proxy.setRules([])
  if (random.chance(0.3))
    broken.push(...(await command(crash, ['prepare', random.pick(['few', 'many', 'large'])], [0, 12])))
  if (random.chance(0.4)) forgetFolders(crash)
  const outsideNow = fingerprint(outside)
  broken.push(...(await command(crash, ['cleanup', '--abandoned-after', '0s'], [0])))
  broken.push(...findBroken(crash, true).map((problem) => `after cleanup: ${problem}`))
  broken.push(...findChanges(outsideNow, fingerprint(outside)))
  if (crash.damage.size > 0) {
    const repair = await crash.world.dsc('verify', '--repair')
    if (isCrash(repair.code, repair.stderr))
      broken.push(`verify --repair ended with ${repair.code}: ${repair.stderr}`)
    // Where the source has changed since, there is nothing to repair from, and the damage stays known.
    if (repair.code === 0) crash.damage.clear()
    broken.push(...findBroken(crash, true).map((problem) => `after repair: ${problem}`))
  }
  return { story, inFlight, broken }
}

async function finish(running: Started): Promise<Finished> {
  const limit = setTimeout(() => killGroup(running.process.pid!), LONGEST_OPERATION_MS)
  try {
    return await running.finished
  } finally {
    clearTimeout(limit)
  }
}

/** Runs a command that nobody kills and says so if it ends otherwise than expected. */
async function command(
  crash: CrashWorld,
  words: readonly string[],
  codes: readonly number[],
): Promise<readonly string[]> {
  const { code, stderr } = await crash.world.dsc(...words)
  const isExpected = code !== null && codes.includes(code) && !isCrash(code, stderr)
  return isExpected ? [] : [`${words.join(' ')} ended with ${code}: ${stderr}`]
}

/** A stack trace, the exit code of a failure that nobody explained, or words that this program got wrong. */
function isCrash(code: number | null, stderr: string): boolean {
  return code === null || code === 1 || code === FAILURES.USAGE.exitCode || /^\s+at .*:\d+/m.test(stderr)
}

/** Record and disk in one text, without what changes by itself. */
function observe({ world }: CrashWorld): string {
  const rows = world.query(
    'SELECT copy_id, state, directory, charged_bytes, lock_state, last_used_at_ms FROM copies',
  )
  const leases = world.query('SELECT lease_id, renewed_at_ms FROM leases')
  const entries = ['staging', 'trash', 'copies'].flatMap((name): readonly string[] => {
    const directory = join(world.root, name)
    try {
      return existsSync(directory) ? readdirSync(directory, { recursive: true, encoding: 'utf8' }) : []
    } catch {
      return ['changing'] // a survivor is at work
    }
  })
  return JSON.stringify([rows, leases, entries.toSorted()])
}

function findChanges(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].flatMap((path) =>
    before.get(path) === after.get(path)
      ? []
      : [`outside/${path} was ${before.get(path) ?? 'nothing'} and is ${after.get(path) ?? 'nothing'}`],
  )
}

/** Takes adopted folders away, as their owner may; the next cleanup has to forget them. */
function forgetFolders({ world, outside }: CrashWorld): void {
  for (const { path } of world.query<{ path: string }>(
    `SELECT path FROM copies WHERE origin = 'local' AND state = 'ready'`,
  ))
    if (path.startsWith(outside)) rmSync(path, { recursive: true, force: true })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has just ended by itself.
  }
}
