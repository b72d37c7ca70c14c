import { existsSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { Running } from '../../testing/dsc-processes.js'
import { findBroken } from './check-invariants.js'
import { TARGETS } from './crash-steps.js'
import {
  type CrashWorld,
  countBeforeLate,
  LATE,
  NODE_NAMES,
  type NodeName,
  type SourceName,
} from './crash-world.js'
import { isCrash } from './is-crash.js'
import { chooseOperation } from './operations.js'
import { choosePoint, type Round, settle } from './run-round.js'
import type { Random } from './seeded-random.js'

const PREPARES = TARGETS.filter(({ kind }) => kind === 'prepare')
const START_MS = 120_000
/** How long a client may take once there is a service again: it waits for one for a minute at most. */
const CLIENT_MS = 180_000
/** The late objects of a source begin once its others are in the manifest, which takes up to 200 ms. */
const LATE_MS = 1000

/**
 * Has the service of a node die at a step of what somebody prepares at its door, and starts it again. The client goes
 * on, nothing that had arrived is fetched again, and it has one lease.
 */
export async function runDoorRound(
  crash: CrashWorld,
  random: Random,
  { number, turn }: { readonly number: number; readonly turn: number },
): Promise<Round> {
  const wanted = PREPARES[turn % PREPARES.length]!
  const node = random.pick(NODE_NAMES)
  const operation = await chooseOperation(crash, { random, number: number * 10, node, wanted })
  const isAmidst = wanted.step === 'file begun'
  const point = isAmidst
    ? { ...choosePoint(random, wanted.step), times: countBeforeLate(operation.words[1] as SourceName) + 1 }
    : choosePoint(random, wanted.step)
  crash.proxy.setRules(isAmidst ? [{ match: LATE, fault: { kind: 'delay', delayMs: LATE_MS } }] : [])
  const broken: string[] = []
  crash.takeTrace()
  const first = await openService(crash, node, point)
  const client = crash.startAtDoor(operation.words)
  const died = await Promise.race([
    first.finished.then(({ signal }) => signal === 'SIGKILL'),
    client.finished.then(() => false),
  ])
  const arrived = died ? listArrived(crash, node) : []
  crash.proxy.forget()
  crash.proxy.setRules([])
  const second = died ? await openService(crash, node) : first
  const limit = setTimeout(() => client.process.kill('SIGKILL'), CLIENT_MS)
  const { code, signal, stderr } = await client.finished
  clearTimeout(limit)
  const words = operation.words.join(' ')
  const story = `${node}, at the door: ${words}; its service ${died ? 'killed' : 'not killed'} ${point.moment} "${point.step}", with ${arrived.length} objects`
  // 5: what is held leaves no room for it.
  if (signal !== null || (code !== 0 && code !== 5) || isCrash(code, stderr))
    broken.push(`${words} at the door ended with ${code ?? signal}: ${stderr}`)
  for (const key of arrived)
    if (crash.proxy.count(new RegExp(`^GET [^? ]*/${key}(?:\\?| |$)`)) > 0)
      broken.push(`${key} had arrived, and was fetched again`)
  const task = operation.words[operation.words.indexOf('--task') + 1]!
  const leases = await crash.query(`SELECT lease_id FROM leases WHERE purpose = 'use' AND task = '${task}'`)
  if (leases.length > 1) broken.push(`${task} has ${leases.length} leases`)
  if (code === 0) await operation.onSuccess?.()
  second.process.kill('SIGTERM')
  const ended = await second.finished
  // One that did not come to the step with the client may do so in its own cleanup.
  if (ended.code !== 0 && (died || ended.signal !== 'SIGKILL'))
    broken.push(`the service ended with ${ended.code ?? ended.signal}: ${ended.stderr}`)
  broken.push(...(await findBroken(crash, false)).map((problem) => `right after: ${problem}`))
  broken.push(...(await settle(crash, random)))
  return { story, inFlight: died, arrivingReads: { objects: 0, ranges: 0 }, arrived: arrived.length, broken }
}

/** Starts the service of a node and waits until it answers at its door. */
async function openService(
  crash: CrashWorld,
  node: NodeName,
  point?: ReturnType<typeof choosePoint>,
): Promise<Running> {
  const service = crash.start(node, ['agent'], point)
  const endMs = Date.now() + START_MS
  while (!(await answers(crash.door))) {
    const { exitCode, signalCode } = service.process
    if (exitCode !== null || signalCode !== null || Date.now() > endMs) {
      service.process.kill('SIGKILL')
      throw new Error(`the service of ${node} does not begin: ${(await service.finished).stderr}`)
    }
    await sleep(50)
  }
  return service
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

/** Keys of the objects that the downloads of a node have, by their manifests. */
function listArrived(crash: CrashWorld, node: NodeName): readonly string[] {
  const staging = join(crash.rootOf(node), 'staging')
  const folders = existsSync(staging) ? readdirSync(staging) : []
  return folders.flatMap((folder) => {
    const path = join(staging, folder, 'manifest.db')
    if (!existsSync(path)) return []
    const manifest = new Database(path)
    try {
      const isBegun =
        manifest.prepare("SELECT 1 FROM sqlite_master WHERE name = 'object'").get() !== undefined
      if (!isBegun) return []
      const rows = manifest.prepare('SELECT key FROM object WHERE state = 1').all() as { key: string }[]
      return rows.map(({ key }) => key)
    } finally {
      manifest.close()
    }
  })
}
