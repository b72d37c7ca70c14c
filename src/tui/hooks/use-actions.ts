import { isDscError } from '../../failure/dsc-error.js'
import type { StatusActions } from '../status-actions.js'
import type { Action, Message, ScreenState } from '../view/screen-state.js'

/** Carries out what keys ask for, and says in the last line how it went. */
export function useActions(
  actions: StatusActions,
  update: (change: (before: ScreenState) => ScreenState) => void,
  refresh: () => void,
): (action: Action) => void {
  const say = (message: Message) => update((before) => ({ ...before, message }))
  return async (action) => {
    const { doing, done, work } = planAction(action, actions)
    say({ text: doing, isError: false })
    try {
      await work()
      say({ text: done, isError: false })
      refresh()
    } catch (error) {
      say({ text: describeError(error), isError: true })
    }
  }
}

function planAction(action: Action, actions: StatusActions) {
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
