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
    const [doing, done] = describeAction(action)
    say({ text: doing, isError: false })
    try {
      const stageLease = 'copyId' in action ? latest.current(action.copyId) : undefined
      const outcome = await actions.perform(action, stageLease)
      say({ text: outcome ?? done, isError: false })
      refresh()
    } catch (error) {
      say({ text: describeError(error), isError: true })
    }
  }
  return (action) => void perform(action)
}

/** The sentences for the last line: while an action is under way, and when it is done. */
function describeAction(action: Action): readonly [doing: string, done: string] {
  if (action.kind === 'undo') return ['taking it back', '']
  const { dataset } = action
  switch (action.kind) {
    case 'lock':
      return [`locking ${dataset}`, `locked ${dataset}`]
    case 'unlock':
      return [`unlocking ${dataset}`, `unlocked ${dataset}`]
    case 'evict':
      return [`evicting ${dataset}`, `evicted ${dataset}`]
    case 'release':
      return [`releasing ${dataset} from ${action.task}`, `released ${dataset} from ${action.task}`]
    case 'cancel':
      return [`stopping the staging of ${dataset}`, `the staging of ${dataset} is told to stop`]
    case 'prepare':
      return [`preparing ${dataset}`, `${dataset} is ready`]
  }
}

function describeError(error: unknown): string {
  if (isDscError(error)) return error.hint ? `${error.message} (try: ${error.hint})` : error.message
  return error instanceof Error ? error.message : String(error)
}
