import { setTimeout as sleep } from 'node:timers/promises'
import type { Finished, Running } from '../../testing/dsc-processes.js'
import { isCrash } from '../crash/is-crash.js'
import type { Findings } from './findings.js'
import { NODES, type NodeName, type PlannedJob, type SourceName } from './plan-soak.js'
import { digestTree, type SoakWorld } from './soak-world.js'

/** A copy that a job holds: nothing may evict or change it before `expiresAtMs` by the clock of the record. */
export interface Hold {
  readonly task: string
  readonly node: string
  readonly copyId: string
  readonly path: string
  readonly expiresAtMs: number
}

const MAX_ATTEMPTS = 40
const PAUSE_MS = 1500
const TTL_HOURS = 3

/** Carries out jobs in a world, and keeps what they hold in `holds` while they do. */
export class JobRunner {
  readonly holds = new Set<Hold>()
  readonly #world: SoakWorld
  readonly #findings: Findings

  constructor(world: SoakWorld, findings: Findings) {
    this.#world = world
    this.#findings = findings
  }

  async run(job: PlannedJob): Promise<void> {
    if (job.way === 'run') await this.#runProgram(job)
    else await this.#holdCopy(job)
    this.#findings.count(`jobs done (${job.way})`)
  }

  async #holdCopy(job: PlannedJob): Promise<void> {
    const { task, node, dataset, way, holdMs } = job
    const words = ['prepare', dataset, '--json', '--task', task, '--ttl', `${TTL_HOURS}h`]
    if (way === 'refresh') words.push('--refresh')
    if (way === 'everywhere') words.push('--nodes', NODES.join(','))
    const beganMs = await this.#nowMs()
    const prepared = await this.#insist(job, words)
    if (prepared === undefined) return
    const holds = await this.#findHolds(task)
    const own = holds.find((hold) => hold.node === node)
    if (own === undefined) {
      // The clock may have stepped over the whole lease meanwhile.
      if ((await this.#nowMs()) - beganMs < TTL_HOURS * 3_600_000)
        this.#findings.fail(`${task}: prepare ended with 0, and no lease is on ${node}`)
    } else {
      this.holds.add(own)
      const before = await this.#read(own, dataset)
      await sleep(holdMs)
      const after = before && (await this.#read(own, dataset))
      if (before && after && !isSame(before, after))
        this.#findings.fail(`${task}: ${own.path} changed while it was held`)
      this.holds.delete(own)
    }
    for (const name of way === 'everywhere' ? NODES : [node]) await this.#release(job, name)
    if ((await this.#findHolds(task)).length > 0)
      this.#findings.fail(`${task}: released, and its lease is still there`)
  }

  #release(job: PlannedJob, node: NodeName): Promise<Finished | undefined> {
    return this.#insist({ ...job, node, way: 'prepare', killsAfterMs: [] }, [
      'release',
      '--all',
      '--task',
      job.task,
    ])
  }

  async #runProgram(job: PlannedJob): Promise<void> {
    const seconds = (job.holdMs / 1000).toFixed(1)
    const sums = 'find -L . -type f -print0 | xargs -0 sha256sum | sort'
    const script = `cd "$DSC_DATASET" || exit 99; ${sums}; echo --; sleep ${seconds}; ${sums}`
    const words = ['run', job.dataset, '--', 'sh', '-c', script]
    const finished = await this.#insist(job, words)
    if (finished === undefined) return
    const [before, after] = finished.stdout.split('--\n')
    if (before === undefined || before !== after)
      this.#findings.fail(`${job.task}: what its program read changed: ${before} then ${after}`)
  }

  /** Repeats a command until it ends with 0; kills the first attempts as planned. */
  async #insist(job: PlannedJob, words: readonly string[]): Promise<Finished | undefined> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      this.#findings.count('commands')
      const running = this.#world.nodeOf(job.node).start(...words)
      const killAfterMs = job.killsAfterMs[attempt]
      const finished = await this.#finish(running, killAfterMs)
      if (finished.code === 0) return finished
      if (finished.signal === null && isCrash(finished.code, finished.stderr)) {
        this.#findings.fail(`${job.task}: ${words.join(' ')} ended with ${finished.code}: ${finished.stderr}`)
        return undefined
      }
      this.#findings.count(finished.signal ? 'commands killed' : `commands ended with ${finished.code}`)
      // Who waits for room on one node must not keep it from others on the next.
      if (job.way === 'everywhere') for (const name of NODES) await this.#release(job, name)
      if (finished.signal === null) await sleep(PAUSE_MS)
    }
    this.#findings.fail(`${job.task}: ${words.join(' ')} failed ${MAX_ATTEMPTS} times`)
    return undefined
  }

  async #finish(running: Running, killAfterMs: number | undefined): Promise<Finished> {
    const kill = () => void running.process.kill('SIGKILL')
    const timer = killAfterMs === undefined ? undefined : setTimeout(kill, killAfterMs)
    const hung = setTimeout(() => {
      this.#findings.fail(`hung for four minutes: ${running.process.spawnargs.slice(2).join(' ')}`)
      kill()
    }, 240_000)
    try {
      return await running.finished
    } finally {
      clearTimeout(timer)
      clearTimeout(hung)
    }
  }

  /** The living leases of a task, and when they end. */
  async #findHolds(task: string): Promise<readonly Hold[]> {
    const rows = await this.#query(
      `SELECT l.copy_id, c.node, c.path, l.expires_at_ms FROM leases l JOIN copies c USING (copy_id)
        WHERE l.task = $1 AND l.purpose = 'use' AND l.expires_at_ms > extract(epoch FROM clock_timestamp()) * 1000`,
      task,
    )
    return rows.map((row) => ({
      task,
      node: String(row.node),
      copyId: String(row.copy_id),
      path: String(row.path),
      expiresAtMs: Number(row.expires_at_ms),
    }))
  }

  /** By the clock of the record. */
  async #nowMs(): Promise<number> {
    const [clock] = await this.#query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
    return Number(clock?.now)
  }

  /** Digests of what a job sees, compared with the source; undefined when its lease has run out meanwhile. */
  async #read(hold: Hold, dataset: SourceName): Promise<ReadonlyMap<string, string> | undefined> {
    let found: ReadonlyMap<string, string> | undefined
    let problem = ''
    try {
      found = digestTree(hold.path)
    } catch (error) {
      problem = String(error)
    }
    if ((await this.#nowMs()) > hold.expiresAtMs - 5000) return undefined
    if (found === undefined) {
      this.#findings.fail(`${hold.task}: ${hold.path} was held and cannot be read: ${problem}`)
      return undefined
    }
    const expected = this.#world.digestsOf(dataset)
    for (const [key, digest] of found)
      if (!expected.get(key)?.has(digest))
        this.#findings.fail(`${hold.task}: ${hold.path}/${key} is not what the store ever had`)
    if (found.size !== expected.size)
      this.#findings.fail(`${hold.task}: ${hold.path} has ${found.size} files of ${expected.size}`)
    return found
  }

  async #query(sql: string, ...values: readonly unknown[]): Promise<readonly Record<string, unknown>[]> {
    for (let attempt = 0; ; attempt++) {
      try {
        return (await this.#world.database.query(sql, [...values])).rows
      } catch (error) {
        if (attempt === 100) throw error
        await sleep(300) // the record is away
      }
    }
  }
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, digest]) => other.get(key) === digest)
}
