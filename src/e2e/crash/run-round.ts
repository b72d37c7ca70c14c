import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Finished, Running } from '../../testing/dsc-processes.js'
import { findBroken, fingerprint } from './check-invariants.js'
import { type CrashCoverage, type CrashPoint, TARGETS } from './crash-steps.js'
import { type CrashWorld, NODE_NAMES, type NodeName, SOURCE_NAMES } from './crash-world.js'
import { isCrash } from './is-crash.js'
import { BRIEF, chooseOperation, type Operation } from './operations.js'
import { type ArrivingReads, readArriving } from './read-arriving.js'
import type { Random } from './seeded-random.js'

/** What a round did. `inFlight`: something was killed that had begun to change record or disk. */
export interface Round {
  readonly story: string
  readonly inFlight: boolean
  /** Objects that were read while their copy was staged. */
  readonly arrivingReads: Pick<ArrivingReads, 'objects' | 'ranges'>
  /** Number of objects that a killed service had, and must not fetch again. */
  readonly arrived?: number
  readonly broken: readonly string[]
}

interface Started extends Running {
  readonly operation: Operation
  ended?: Finished
}

const MAX_OPERATION_MS = 120_000

/**
 * Starts up to three commands at once on two nodes, kills some or all, and checks what is left. Most often the
 * first dies by itself at a step of its work; else all run until the first change is seen, and a while longer.
 */
export async function runRound(
  crash: CrashWorld,
  random: Random,
  options: { readonly number: number; readonly turn: number; readonly coverage: CrashCoverage },
): Promise<Round> {
  const { number, turn, coverage } = options
  const { proxy, outside } = crash
  const home: NodeName = random.chance(0.6) ? 'node-a' : 'node-b'
  const target = random.chance(0.75) ? TARGETS[turn % TARGETS.length] : undefined
  const operations: Operation[] = []
  for (let index = random.pick([1, 1, 2, 3]); index > 0; index--) {
    const node = operations.length === 0 || random.chance(0.5) ? home : random.pick(NODE_NAMES)
    const wanted = operations.length === 0 ? target : undefined
    operations.push(await chooseOperation(crash, { random, number: number * 10 + index, node, wanted }))
  }
  const first = operations[0]!
  const point = target && choosePoint(random, target.step)
  proxy.setRules(
    random.chance(0.5) ? [{ match: '^GET .*bin', fault: { kind: 'delay', delayMs: random.below(40) } }] : [],
  )
  const before = await observe(crash)
  const outsideBefore = fingerprint(outside)
  crash.takeTrace()
  const started = operations.map((operation, index): Started => {
    operation.before?.()
    const running: Started = {
      ...crash.start(operation.node, operation.words, index === 0 ? point : undefined),
      operation,
    }
    void running.finished.then((ended) => {
      running.ended = ended
    })
    return running
  })
  const stop = new AbortController()
  const arriving = readArriving(crash, stop.signal)
  const waitMs = random.below(250)
  const isPartial = random.chance(0.25)
  if (point === undefined) {
    await waitFor(started, async () => (await observe(crash)) !== before)
    await sleep(waitMs)
  } else await waitFor(started.slice(0, 1), async () => false)
  // Beside a step that was reached the others may go on to their end.
  const victims = started.filter(({ ended }, index) => !ended && !(isPartial && index === (point ? 1 : 0)))
  for (const { process: child } of victims) killGroup(child.pid!)
  const ends = await Promise.all(started.map((running) => finish(running)))
  stop.abort()
  const reads = await arriving
  const killed = ends.filter(({ signal }) => signal === 'SIGKILL').length
  const isReached = point !== undefined && ends[0]!.signal === 'SIGKILL'
  if (isReached) coverage.note(first.kind, point.step)
  const when = point
    ? `${point.moment} "${point.step}"${point.times > 1 ? ` no. ${point.times}` : ''}${isReached ? '' : ', not reached'}`
    : `${waitMs} ms after a change`
  const story = `${operations.map(({ node, words }) => `${node}: ${words.join(' ')}`).join(' + ')}; ${killed} killed, ${when}`
  const broken = ends.flatMap(({ signal, code, stderr }, index) =>
    signal === null && isCrash(code, stderr)
      ? [`${operations[index]!.words.join(' ')} ended with ${code}: ${stderr}`]
      : [],
  )
  broken.push(...reads.broken)
  const inFlight = killed > 0 && (isReached || (await observe(crash)) !== before)
  for (const [index, { code }] of ends.entries()) if (code === 0) await operations[index]!.onSuccess?.()
  broken.push(...(await findBroken(crash, false)).map((problem) => `right after: ${problem}`))
  broken.push(...findChanges(outsideBefore, fingerprint(outside)))
  proxy.setRules([])
  if (killed > 0) broken.push(...(await settle(crash, random)))
  return { story, inFlight, arrivingReads: reads, broken }
}

/** A moment at the step; where an operation comes to it many times, any of those. */
export function choosePoint(random: Random, step: string): CrashPoint {
  const isFrequent = step === 'file begun' || step === 'file linked'
  return {
    step,
    moment: random.pick(['before', 'during', 'after']),
    times: isFrequent ? random.pick([1, 1, 1, 2, 20]) : 1,
  }
}

/** Waits until `isNow`, or until all have ended. */
async function waitFor(started: readonly Started[], isNow: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + MAX_OPERATION_MS
  while (Date.now() < endMs && started.some(({ ended }) => !ended) && !(await isNow())) await sleep(5)
}

/** Lets both nodes clean up, and checks that record and disk agree then. */
export async function settle(crash: CrashWorld, random: Random): Promise<readonly string[]> {
  const { outside, damage } = crash
  const broken: string[] = []
  const node = random.pick(NODE_NAMES)
  if (random.chance(0.3))
    broken.push(
      ...(await command(crash, {
        node,
        words: ['prepare', random.pick(SOURCE_NAMES), '--task', 'settling', '--ttl', BRIEF],
        codes: [0, 5],
      })),
    )
  if (random.chance(0.4)) await forgetFolders(crash)
  const outsideNow = fingerprint(outside)
  const cleanup = ['cleanup', '--abandoned-after', '0s']
  const cleaned = await Promise.all(
    NODE_NAMES.map((name) => command(crash, { node: name, words: cleanup, codes: [0] })),
  )
  broken.push(...cleaned.flat())
  broken.push(...(await findBroken(crash, true)).map((problem) => `after cleanup: ${problem}`))
  broken.push(...findChanges(outsideNow, fingerprint(outside)))
  if (damage.size === 0) return broken
  const repairs = await Promise.all(
    NODE_NAMES.map((name) => crash.start(name, ['verify', '--repair']).finished),
  )
  for (const { code, stderr } of repairs)
    if (isCrash(code, stderr)) broken.push(`verify --repair ended with ${code}: ${stderr}`)
  // Where the source has changed since, there is nothing to repair from, and the damage stays known.
  if (repairs.every(({ code }) => code === 0)) damage.clear()
  broken.push(...(await findBroken(crash, true)).map((problem) => `after repair: ${problem}`))
  return broken
}

async function finish(running: Started): Promise<Finished> {
  const limit = setTimeout(() => killGroup(running.process.pid!), MAX_OPERATION_MS)
  try {
    return await running.finished
  } finally {
    clearTimeout(limit)
  }
}

/** Runs a command that nobody kills and says so if it ends otherwise than expected. */
async function command(
  crash: CrashWorld,
  { node, words, codes }: { node: NodeName; words: readonly string[]; codes: readonly number[] },
): Promise<readonly string[]> {
  const { code, stderr } = await crash.start(node, words).finished
  const isExpected = code !== null && codes.includes(code) && !isCrash(code, stderr)
  return isExpected ? [] : [`${node}: ${words.join(' ')} ended with ${code}: ${stderr}`]
}

/** Record and disks in one text, without what changes by itself. */
async function observe(crash: CrashWorld): Promise<string> {
  const rows = await crash.query(
    'SELECT copy_id, state, directory, charged_bytes, lock_state, last_used_at_ms FROM copies ORDER BY copy_id',
  )
  const leases = await crash.query('SELECT lease_id, renewed_at_ms FROM leases ORDER BY lease_id')
  const entries = NODE_NAMES.flatMap((node) =>
    ['staging', 'trash', 'copies'].flatMap((name): readonly string[] => {
      const directory = join(crash.rootOf(node), name)
      try {
        return existsSync(directory) ? readdirSync(directory, { recursive: true, encoding: 'utf8' }) : []
      } catch {
        return ['changing'] // a survivor is at work
      }
    }),
  )
  return JSON.stringify([rows, leases, entries.toSorted()])
}

function findChanges(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].flatMap((path) =>
    before.get(path) === after.get(path) || path.endsWith('.dsc-adopted')
      ? []
      : [`outside/${path} was ${before.get(path) ?? 'nothing'} and is ${after.get(path) ?? 'nothing'}`],
  )
}

/** Takes adopted folders away, as their owner may; the next cleanup has to forget them. */
async function forgetFolders(crash: CrashWorld): Promise<void> {
  for (const { path } of await crash.query<{ path: string }>(
    `SELECT path FROM copies WHERE origin = 'local' AND state = 'ready'`,
  ))
    if (path.startsWith(crash.outside)) rmSync(path, { recursive: true, force: true })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has just ended by itself.
  }
}
