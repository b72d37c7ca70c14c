import { type CrashWorld, SOURCE_NAMES } from './crash-world.js'
import type { Random } from './seeded-random.js'

/** A command to start, and what its success or its start means for what must survive. */
export interface Operation {
  readonly words: readonly string[]
  /** Runs before the command: the holds that it may end are dropped then. */
  readonly before?: () => void
  /** Runs after the round, if the command ended with 0: from then on something must survive. */
  readonly onSuccess?: () => void
}

const LONG_KINDS = [
  ...(['prepare', 'prepare', 'prepare', 'refresh', 'refresh', 'refresh', 'evict', 'evict-free'] as const),
  ...(['cleanup', 'repair', 'repair', 'adopt', 'adopt', 'run'] as const),
]
const KINDS = [...LONG_KINDS, 'release', 'lock', 'unlock'] as const

/**
 * Chooses a command. `number` makes names of tasks unlike each other; `isLong`: one that takes long enough to be
 * killed in the middle.
 */
export async function chooseOperation(
  crash: CrashWorld,
  random: Random,
  number: number,
  isLong: boolean,
): Promise<Operation> {
  const { world, holds } = crash
  const rows = world.query<{ dataset: string }>('SELECT dataset FROM cache_record')
  const ready = new Set(rows.map(({ dataset }) => dataset))
  const absent = SOURCE_NAMES.filter((source) => !ready.has(source))
  const task = `task-${number}`
  const lease = random.chance(0.3) ? ['--task', task, '--ttl', '1h'] : []
  const drop = (isDropped: (hold: (typeof holds)[number]) => boolean) => {
    for (const hold of holds.filter(isDropped)) holds.splice(holds.indexOf(hold), 1)
  }
  const kind = random.pick(isLong ? LONG_KINDS : KINDS)
  // Preparing what is ready and evicting what is not there are over too soon.
  const useful =
    kind === 'prepare' || kind === 'run' ? absent : SOURCE_NAMES.filter((source) => ready.has(source))
  const name = random.pick(useful.length > 0 && random.chance(0.8) ? useful : SOURCE_NAMES)
  const keep = () => {
    const [use] = world.query<{ copy_id: string; dataset: string }>(
      `SELECT copies.copy_id, copies.dataset FROM leases JOIN copies USING (copy_id) WHERE leases.task = '${task}'`,
    )
    holds.push({ copyId: use?.copy_id ?? 'nothing', dataset: use?.dataset ?? name, task })
  }
  switch (kind) {
    case 'prepare':
      return { words: ['prepare', name, ...lease], ...(lease.length > 0 ? { onSuccess: keep } : {}) }
    case 'refresh':
      if (random.chance(0.9)) await crash.changeSource(name)
      return {
        words: ['prepare', name, '--refresh', ...lease],
        ...(lease.length > 0 ? { onSuccess: keep } : {}),
      }
    case 'evict':
      return { words: ['evict', name, '--yes'] }
    case 'evict-free':
      return { words: ['evict', '--free', '1MiB', '--yes'] }
    case 'cleanup':
      return { words: ['cleanup', '--abandoned-after', '0s', ...(random.chance(0.3) ? ['--resume'] : [])] }
    case 'repair':
      crash.damageSomeFile(random)
      return { words: ['verify', '--repair'] }
    case 'adopt': {
      const { folder, name: found } = crash.makeFolder()
      return { words: ['adopt', folder, '--name', found] }
    }
    case 'release': {
      const held = holds.find((hold) => hold.task !== null)?.task ?? 'nobody'
      return { words: ['release', '--all', '--task', held], before: () => drop((hold) => hold.task === held) }
    }
    case 'lock':
      return { words: ['lock', name], onSuccess: () => holdLocked(crash, name) }
    case 'unlock':
      return {
        words: ['unlock', name],
        before: () => drop((hold) => hold.task === null && hold.dataset === name),
      }
    case 'run':
      return { words: ['run', name, '--', 'sleep', '0.2'] }
  }
}

function holdLocked({ world, holds }: CrashWorld, dataset: string): void {
  const locked = world.query<{ copy_id: string }>(
    `SELECT copy_id FROM copies WHERE dataset = '${dataset}' AND state = 'ready' AND lock_state IS NOT NULL`,
  )
  for (const { copy_id: copyId } of locked) holds.push({ copyId, dataset, task: null })
}
