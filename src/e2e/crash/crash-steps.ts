/** What is persisted when something is thrown away. */
export const EVICTS = ['moved to the trash', 'trash removed', 'record: copy gone'] as const
const STAGES = [
  ...['record: copy added', 'staging directory made', 'record: admitted', 'file begun', 'manifest finished'],
  ...['published', 'record: ready'],
] as const
const ADOPTS = [
  ...['record: copy added', 'staging directory made', 'folder pointed at', 'manifest finished', 'published'],
  ...EVICTS, // of its own staging directory and its row
] as const

/** What each operation persists: at all of these it is killed in a run of 500 rounds. */
export const STEPS = {
  prepare: [...STAGES, ...EVICTS],
  run: [...STAGES],
  refresh: [...STAGES, 'record: leased', 'file linked', 'record: lease gone'],
  evict: ['record: evicting', 'kept in the trash', 'record: copy gone'],
  'evict-free': ['record: evicting', ...EVICTS],
  undo: ['taken out of the trash', 'record: copy added'],
  cleanup: ['record: lease gone', 'record: evicting', 'record: copy added', ...EVICTS],
  repair: ['record: leased', 'repair begun', 'file begun', 'repaired file placed', 'record: lease gone'],
  adopt: ADOPTS,
  'adopt-source': ADOPTS,
  release: ['record: lease gone'],
  lock: ['record: lock'],
  unlock: ['record: lock'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type OperationKind = keyof typeof STEPS
export const KINDS = Object.keys(STEPS) as readonly OperationKind[]

/** Every step of every operation. Rounds take them in turn, so that a seed says which comes when. */
export const TARGETS = KINDS.flatMap((kind) => STEPS[kind].map((step) => ({ kind, step })))

/** Where in its work a process kills itself. `during` lets what is asynchronous begin. */
export interface CrashPoint {
  readonly step: string
  readonly moment: 'before' | 'during' | 'after'
  /** The step comes for the so manieth time, 1 or more. */
  readonly times: number
}

const PRELOADED = new URL('./crash-at-step.js', import.meta.url).href // no path: it may have a space

/** Variables that make a dsc process note its steps in `trace` and die at `point`. */
export function crashEnvironment(
  trace: string,
  point: CrashPoint | undefined,
): Readonly<Record<string, string>> {
  return {
    NODE_OPTIONS: `--import ${PRELOADED}`,
    CRASH_TRACE: trace,
    ...(point ? { CRASH_AT: `${point.moment}:${point.times}:${point.step}` } : {}),
  }
}

/** Which steps of which operation a process died at. */
export class CrashCoverage {
  readonly #deaths = new Map<string, number>()

  note(kind: OperationKind, step: string): void {
    const key = `${kind} / ${step}`
    this.#deaths.set(key, (this.#deaths.get(key) ?? 0) + 1)
  }

  /** Operation × step, a line per operation. */
  format(): string {
    return KINDS.map((kind) => {
      const steps = STEPS[kind].map((step) => `${step} ${this.#deaths.get(`${kind} / ${step}`) ?? 0}`)
      return `  ${kind}: ${steps.join(', ')}\n`
    }).join('')
  }

  missing(): readonly string[] {
    return TARGETS.map(({ kind, step }) => `${kind} / ${step}`).filter((key) => !this.#deaths.has(key))
  }
}
