import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KINDS, type OperationKind } from './crash-steps.js'
import { type CrashWorld, type Hold, type NodeName, SOURCE_NAMES } from './crash-world.js'
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

/** Those of many steps more often: each step has its turn then. */
const WEIGHTS: Readonly<Record<OperationKind, number>> = {
  ...{ prepare: 4, run: 2, refresh: 4, evict: 2, 'evict-free': 2, cleanup: 4, repair: 3 },
  ...{ adopt: 2, 'adopt-source': 2, release: 1, lock: 1, unlock: 1 },
}
const WEIGHTED = KINDS.flatMap((kind) => Array.from({ length: WEIGHTS[kind] }, () => kind))

/** Chooses a command and sets the world up so that it has something to do. `number` names its task. */
export async function chooseOperation(
  crash: CrashWorld,
  random: Random,
  number: number,
  node: NodeName,
): Promise<Operation> {
  const { holds } = crash
  const rows = await crash.query<{ dataset: string }>(
    `SELECT DISTINCT dataset FROM cache_record WHERE node = '${node}'`,
  )
  const ready = new Set(rows.map(({ dataset }) => dataset))
  const present = SOURCE_NAMES.filter((source) => ready.has(source))
  const task = `task-${number}`
  const lease = random.chance(0.3) ? ['--task', task, '--ttl', '1h'] : []
  const drop = (isDropped: (hold: Hold) => boolean) => {
    for (const hold of holds.filter(isDropped)) holds.splice(holds.indexOf(hold), 1)
  }
  const kind = random.pick(WEIGHTED)
  // Preparing what is ready and evicting what is not there are over too soon.
  const useful =
    kind === 'prepare' || kind === 'run' ? SOURCE_NAMES.filter((name) => !ready.has(name)) : present
  const name = random.pick(useful.length > 0 && random.chance(0.9) ? useful : SOURCE_NAMES)
  const operation = { kind, node }
  const keep = async () => {
    const [use] = await crash.query<{ copy_id: string; dataset: string }>(
      `SELECT copies.copy_id, copies.dataset FROM leases JOIN copies ON copies.copy_id = leases.copy_id
        WHERE leases.task = '${task}'`,
    )
    holds.push({ copyId: use?.copy_id ?? 'nothing', dataset: use?.dataset ?? name, node, task })
  }
  const kept = lease.length > 0 ? { onSuccess: keep } : {}
  switch (kind) {
    case 'prepare':
      return { ...operation, words: ['prepare', name, ...lease], ...kept }
    case 'refresh':
      if (random.chance(0.9)) await crash.changeSource(name)
      return { ...operation, words: ['prepare', name, '--refresh', ...lease], ...kept }
    case 'evict':
      return { ...operation, words: ['evict', name, '--yes'] }
    case 'evict-free':
      return { ...operation, words: ['evict', '--free', '1KiB', '--yes'] }
    case 'cleanup': {
      await leaveSomething(crash, random, node, name)
      const resume = random.chance(0.2) ? ['--resume'] : []
      return { ...operation, words: ['cleanup', '--abandoned-after', '0s', ...resume] }
    }
    case 'repair': {
      const damaged = await crash.damageSomeFile(node, random)
      const only = damaged !== undefined && random.chance(0.7) ? [damaged] : []
      return { ...operation, words: ['verify', ...only, '--repair'] }
    }
    case 'adopt': {
      const { folder, name: found } = crash.makeFolder(false)
      return { ...operation, words: ['adopt', folder, '--name', found] }
    }
    case 'adopt-source': {
      const { folder, name: found, source } = crash.makeFolder(true)
      return { ...operation, words: ['adopt', folder, '--name', found, '--source', source] }
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

/** Something for a cleanup to do, of each kind that it knows. */
async function leaveSomething(
  crash: CrashWorld,
  random: Random,
  node: NodeName,
  name: string,
): Promise<void> {
  const root = crash.rootOf(node)
  for (const stray of ['staging', 'trash']) {
    const directory = join(root, stray, `stray-${random.below(1e6)}`, 'files', 'deep')
    mkdirSync(directory, { recursive: true })
    for (let index = 0; index < 20; index++) writeFileSync(join(directory, `${index}`), 'stray')
  }
  const words = random.pick([
    ['evict', name, '--yes'],
    ['prepare', name, '--refresh'],
    ['adopt', crash.makeFolder(false).folder],
  ])
  const step = { evict: 'record: evicting', prepare: 'record: admitted', adopt: 'published' }[words[0]!]!
  await crash.start(node, words, { step, moment: 'after', times: 1 }).finished
}

async function holdLocked(crash: CrashWorld, node: NodeName, dataset: string): Promise<void> {
  const locked = await crash.query<{ copy_id: string }>(
    `SELECT copy_id FROM copies WHERE dataset = '${dataset}' AND node = '${node}' AND state = 'ready'
      AND lock_state IS NOT NULL`,
  )
  for (const { copy_id: copyId } of locked) crash.holds.push({ copyId, dataset, node, task: null })
}
