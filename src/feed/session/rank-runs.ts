import { DscError } from '../../failure/dsc-error.js'
import type { Hello, Start } from './hello.js'

/** One pass of a rank's workers over (the rest of) an epoch. */
export interface Run {
  readonly name: string | undefined
  readonly epoch: number
  readonly step: number
  readonly workers: number
  /** Names of the most recent earlier runs. */
  readonly earlier: readonly string[]
  /** Worker → the session that reads for it. */
  readonly sessions: Map<number, RunSession>
}

/** The part of a connection that a run needs. */
export interface RunSession {
  readonly pid: number
  /** Whether it still reads: not closed, and not at the end of its run. */
  readonly isReading: boolean
}

/** Where a session reads, and whether it opens a new run. */
interface Placement {
  readonly run: Run
  readonly isNew: boolean
}

/** Number of names kept: a late worker belongs to a run of a moment ago. */
const MAX_EARLIER = 16

/**
 * Finds or opens the run a worker belongs to. Workers that name their run share it. Workers that do not (a plain torch
 * DataLoader) fill the open run until one arrives whose place is taken; that one opens the next epoch. Undefined if a
 * worker arrives late for a run that the current one replaced.
 */
export function placeSession(
  current: Run | undefined,
  start: Start,
  client: Pick<Hello, 'worker' | 'workers'> & { readonly session: RunSession },
): Placement | undefined {
  const { worker, workers, session } = client
  const isSame =
    current !== undefined &&
    current.workers === workers &&
    (start.run === undefined ? current.name === undefined : current.name === start.run)
  const holder = isSame ? current.sessions.get(worker) : undefined
  if (isSame && holder === undefined) {
    current.sessions.set(worker, session)
    return { run: current, isNew: false }
  }
  if (holder?.isReading && holder !== session)
    throw new DscError(
      'FEED_PROTOCOL',
      `worker ${worker} of this rank is already reading in process ${holder.pid}; two loaders would each get half of the samples`,
      { hint: 'close the other loader, give it another rank, or start a feed of its own (DSC_FEED_JOB)' },
    )
  const before = current?.earlier ?? []
  const isAgain = current?.name === undefined || current.name === start.run
  if (!isAgain && start.run !== undefined && before.includes(start.run)) return undefined
  const epoch = start.epoch ?? (current === undefined ? 0 : current.epoch + 1)
  const run: Run = {
    name: start.run,
    epoch,
    step: start.step,
    workers,
    earlier: isAgain ? before : [...before, current.name].slice(-MAX_EARLIER),
    sessions: new Map([[worker, session]]),
  }
  return { run, isNew: true }
}
