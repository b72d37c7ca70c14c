import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EVICTS, KINDS, type OperationKind } from './crash-steps.js'
import { type CrashWorld, type Hold, type NodeName, SOURCE_NAMES, type SourceName } from './crash-world.js'
import type { Random } from './seeded-random.js'

/** A command to start, and what its success or its start means for what must survive. */
export interface Operation {
  readonly kind: OperationKind
  readonly node: NodeName
  readonly words: readonly string[]
  /** Runs before the command: the holds that it may end are dropped then. */
  readonly before?: () => void
  /** Runs after the round, if the command ended with 0: from then on something must survive. */
  readonly onSuccess?: () => Promise<void>
}

/** Whose turn it is; `wanted`: the kind of command, if there is one to be, and the step to come to. */
export interface Turn {
  readonly random: Random
  readonly number: number
  readonly node: NodeName
  readonly wanted?: { readonly kind: OperationKind; readonly step: string } | undefined
}

/** Steps of what is thrown away. */
const THROWS_AWAY: readonly string[] = EVICTS

/** A lease that is over before the next rounds. Without a task it would be of this process, which lives on. */
export const BRIEF = '1s'

/** Those of many steps more often: each step has its turn then. */
const WEIGHTS: Readonly<Record<OperationKind, number>> = {
  prepare: 4,
  run: 2,
  refresh: 4,
  evict: 2,
  'evict-free': 2,
  undo: 2,
  cleanup: 4,
  repair: 3,
  adopt: 2,
  'adopt-source': 2,
  release: 1,
  lock: 1,
  unlock: 1,
}
const WEIGHTED = KINDS.flatMap((kind) => Array.from({ length: WEIGHTS[kind] }, () => kind))

/**
 * Chooses a command, of the `wanted` kind if there is one: the world is set up then so that it has something to do.
 * `number` names its task.
 */
export async function chooseOperation(crash: CrashWorld, turn: Turn): Promise<Operation> {
  const { holds } = crash
  const { random, number, node, wanted } = turn
  if (wanted !== undefined) await makeUseful(crash, turn, wanted)
  const useful = await findUseful(crash, node)
  const task = `task-${number}`
  const isKept = random.chance(0.25)
  const lease = ['--task', task, '--ttl', isKept ? '1h' : BRIEF]
  const drop = (isDropped: (hold: Hold) => boolean) => {
    for (const hold of holds.filter(isDropped)) holds.splice(holds.indexOf(hold), 1)
  }
  // What finds nothing to do is over too soon to be killed.
  const isAnything = wanted === undefined && random.chance(0.1)
  const kind =
    wanted?.kind ?? random.pick(isAnything ? KINDS : WEIGHTED.filter((some) => useful[some].length > 0))
  const name = random.pick(isAnything || useful[kind].length === 0 ? SOURCE_NAMES : useful[kind])
  const operation = { kind, node }
  const kept = isKept ? { onSuccess: () => holdLeased(crash, { node, dataset: name, task }) } : {}
  switch (kind) {
    case 'prepare':
      return { ...operation, words: ['prepare', name, ...lease], ...kept }
    case 'refresh':
      if (random.chance(0.9)) await crash.changeSource(name)
      return { ...operation, words: ['prepare', name, '--refresh', ...lease], ...kept }
    case 'evict':
      return { ...operation, words: ['evict', name, '--yes'] }
    case 'evict-free':
      return { ...operation, words: ['evict', '--free', '1KiB', '--yes', '--no-undo'] }
    case 'undo':
      await crash.start(node, ['evict', name, '--yes']).finished
      return { ...operation, words: ['undo'] }
    case 'cleanup': {
      await leaveSomething(crash, turn, name)
      const resume = random.chance(0.2) ? ['--resume'] : []
      return { ...operation, words: ['cleanup', '--abandoned-after', '0s', ...resume] }
    }
    case 'repair': {
      const damaged = await crash.damageSomeFile(node, random)
      const only = damaged !== undefined && random.chance(0.7) ? [damaged] : []
      return { ...operation, words: ['verify', ...only, '--repair'] }
    }
    case 'adopt': {
      const { folder, name: found } = crash.makeFolder('found')
      return { ...operation, words: await adoptPerhapsTwice(crash, turn, [folder, '--name', found]) }
    }
    case 'adopt-source': {
      const { folder, name: found, source } = crash.makeFolder('given')
      const words = [folder, '--name', found, '--source', source]
      return { ...operation, words: await adoptPerhapsTwice(crash, turn, words) }
    }
    case 'release': {
      const held = holds.find((hold) => hold.task !== null && hold.node === node)?.task ?? 'nobody'
      return {
        ...operation,
        words: ['release', '--all', '--task', held],
        before: () => drop((hold) => hold.task === held),
      }
    }
    case 'lock':
      return { ...operation, words: ['lock', name], onSuccess: () => holdLocked(crash, node, name) }
    case 'unlock':
      return {
        ...operation,
        words: ['unlock', name],
        before: () => drop((hold) => hold.task === null && hold.node === node && hold.dataset === name),
      }
    case 'run':
      return { ...operation, words: ['run', name, '--', 'true'] }
  }
}

/** Who adopts a folder a second time throws away what he staged. */
async function adoptPerhapsTwice(
  crash: CrashWorld,
  { random, node, wanted }: Turn,
  folder: readonly string[],
): Promise<readonly string[]> {
  const words = ['adopt', ...folder]
  if (wanted ? THROWS_AWAY.includes(wanted.step) : random.chance(0.2)) await crash.start(node, words).finished
  return words
}

/** Fills the node with idle copies until the next to be prepared has to make room. */
async function fillUp(crash: CrashWorld, { number, node }: Turn): Promise<void> {
  const brief = (task: string) => ['--task', `${task}-${number}`, '--ttl', BRIEF]
  for (const name of SOURCE_NAMES.filter((other) => other !== 'large'))
    await crash.start(node, ['prepare', name, ...brief(name)]).finished
  await sleep(1000) // for the leases to end
}

/** Lets some kinds find what they need: something that is ready and idle, leased or locked. */
async function makeUseful(
  crash: CrashWorld,
  turn: Turn,
  { kind, step }: NonNullable<Turn['wanted']>,
): Promise<void> {
  const { random, number, node } = turn
  if (kind === 'prepare' && THROWS_AWAY.includes(step)) return fillUp(crash, turn)
  if (kind === 'run' || kind === 'cleanup' || kind.startsWith('adopt')) return
  // Where a copy is idle already, preparing another evicts it.
  const isThere = async () => {
    const useful = await findUseful(crash, node)
    return useful[kind === 'prepare' ? 'evict' : kind].length > 0
  }
  if (await isThere()) return
  const [name, task] = [random.pick(SOURCE_NAMES), `ready-${number}`]
  const isHeld = kind === 'release'
  const words = ['prepare', name, '--task', task, '--ttl', isHeld ? '1h' : BRIEF]
  const { code } = await crash.start(node, words).finished
  if (code !== 0) return // no room beside what is held
  if (kind === 'unlock') {
    await crash.start(node, ['lock', name]).finished
    await holdLocked(crash, node, name)
  } else if (isHeld) await holdLeased(crash, { node, dataset: name, task })
  for (let waits = 0; waits < 40 && !(await isThere()); waits++) await sleep(50) // for the lease to end
}

/** For which datasets each kind of operation finds something to do. */
async function findUseful(
  crash: CrashWorld,
  node: NodeName,
): Promise<Readonly<Record<OperationKind, readonly SourceName[]>>> {
  const rows = await crash.query<{ dataset: string; uses: number; lock_state: string | null }>(
    `SELECT dataset, lock_state, (SELECT count(*) FROM leases WHERE leases.copy_id = copies.copy_id
        AND (expires_at_ms IS NULL OR expires_at_ms > ${Date.now()})) AS uses
      FROM copies WHERE node = '${node}' AND state = 'ready' ORDER BY dataset, created_at_ms`,
  )
  const present = SOURCE_NAMES.filter((name) => rows.some(({ dataset }) => dataset === name))
  const absent = SOURCE_NAMES.filter((name) => !present.includes(name))
  const idle = present.filter((name) =>
    rows.every((row) => row.dataset !== name || (row.uses === 0 && row.lock_state === null)),
  )
  const held = crash.holds.filter((hold) => hold.node === node)
  const datasetsOf = (some: readonly Hold[]) =>
    SOURCE_NAMES.filter((name) => some.some(({ dataset }) => dataset === name))
  return {
    prepare: absent,
    run: absent,
    refresh: present,
    repair: present,
    lock: present,
    evict: idle,
    'evict-free': idle,
    undo: idle,
    cleanup: SOURCE_NAMES,
    adopt: SOURCE_NAMES,
    'adopt-source': SOURCE_NAMES,
    release: datasetsOf(held.filter(({ task }) => task !== null)),
    unlock: datasetsOf(held.filter(({ task }) => task === null)),
  }
}

/** Something for a cleanup to do, of each kind that it knows. */
async function leaveSomething(crash: CrashWorld, turn: Turn, name: string): Promise<void> {
  const { random, number, node } = turn
  const root = crash.rootOf(node)
  for (const stray of ['staging', 'trash']) {
    const directory = join(root, stray, `stray-${random.below(1e6)}`, 'files', 'deep')
    mkdirSync(directory, { recursive: true })
    for (let index = 0; index < 20; index++) writeFileSync(join(directory, `${index}`), 'stray')
  }
  const words = random.pick([
    ['evict', name, '--yes'],
    ['prepare', name, '--refresh', '--task', `left-${number}`, '--ttl', BRIEF],
    ['adopt', crash.makeFolder('found').folder],
  ])
  const step = { evict: 'record: evicting', prepare: 'record: admitted', adopt: 'published' }[words[0]!]!
  await crash.start(node, words, { step, moment: 'after', times: 1 }).finished
}

async function holdLeased(crash: CrashWorld, use: Omit<Hold, 'copyId'>): Promise<void> {
  const [lease] = await crash.query<{ copy_id: string }>(
    `SELECT copy_id FROM leases WHERE task = '${use.task}'`,
  )
  crash.holds.push({ ...use, copyId: lease?.copy_id ?? 'nothing' })
}

async function holdLocked(crash: CrashWorld, node: NodeName, dataset: string): Promise<void> {
  const locked = await crash.query<{ copy_id: string }>(
    `SELECT copy_id FROM copies WHERE dataset = '${dataset}' AND node = '${node}' AND state = 'ready'
      AND lock_state IS NOT NULL`,
  )
  for (const { copy_id: copyId } of locked) crash.holds.push({ copyId, dataset, node, task: null })
}
