import { useRef } from 'react'
import { isDscError } from '../../failure/dsc-error.js'
import type { PlacedLease } from '../../model/lease.js'
import type { StatusActions } from '../status-actions.js'
import type { Action, Message, ScreenState } from '../view/screen-state.js'

/** The parts of the screen that actions need. */
interface Screen {
  readonly refresh: () => void
  /** The stager's lease on this copy. */
  readonly findStageLease: (copyId: string) => PlacedLease | undefined
}

/** Performs the actions of keys, and shows the outcome in the last line. */
export function useActions(
  actions: StatusActions,
  update: (change: (before: ScreenState) => ScreenState) => void,
  { refresh, findStageLease }: Screen,
): (action: Action) => void {
  const latest = useRef(findStageLease)
  latest.current = findStageLease
  const say = (message: Message) => update((before) => ({ ...before, message }))
  const perform = async (action: Action) => {
    const { doing, done, work } = planAction(action, actions, latest.current)
    say({ text: doing, isError: false })
    try {
      const outcome = await work()
      say({ text: typeof outcome === 'string' ? outcome : done, isError: false })
      refresh()
    } catch (error) {
      say({ text: describeError(error), isError: true })
    }
  }
  return (action) => void perform(action)
}

/** Sentences for the last line, and the work; a sentence that the work resolves with replaces `done`. */
interface PlannedAction {
  readonly doing: string
  readonly done: string
  readonly work: () => Promise<unknown>
}

function planAction(
  action: Action,
  actions: StatusActions,
  findStageLease: (copyId: string) => PlacedLease | undefined,
): PlannedAction {
  if (action.kind === 'undo') return { doing: 'taking it back', done: '', work: () => actions.undo() }
  const { dataset } = action
  switch (action.kind) {
    case 'lock':
      return {
        doing: `locking ${dataset}`,
        done: `locked ${dataset}`,
        work: () => actions.lock(action.copyId, action.reason),
      }
    case 'unlock':
      return {
        doing: `unlocking ${dataset}`,
        done: `unlocked ${dataset}`,
        work: () => actions.unlock(action.copyId),
      }
    case 'evict':
      return {
        doing: `evicting ${dataset}`,
        done: `evicted ${dataset}`,
        work: () => actions.evict(action.copyId),
      }
    case 'release':
      return {
        doing: `releasing ${dataset} from ${action.task}`,
        done: `released ${dataset} from ${action.task}`,
        work: () => actions.release(action.leaseId),
      }
    case 'cancel':
      return {
        doing: `stopping the staging of ${dataset}`,
        done: `the staging of ${dataset} is told to stop`,
        work: async () => {
          const lease = findStageLease(action.copyId)
          if (!lease) throw new Error(`the download of ${dataset} has ended`)
          await actions.cancel(lease)
        },
      }
    case 'prepare':
      return {
        doing: `preparing ${dataset}`,
        done: `${dataset} is ready`,
        work: () => actions.prepare(dataset),
      }
  }
}

function describeError(error: unknown): string {
  if (isDscError(error)) return error.hint ? `${error.message} (try: ${error.hint})` : error.message
  return error instanceof Error ? error.message : String(error)
}
