import { formatByteSize } from '../../model/byte-size.js'
import { findKeepers } from '../../stage/plan/explain-copy.js'
import { note } from './change-screen.js'
import type { KeyOutcome, KeyTarget } from './key-press.js'
import type { ScreenState } from './screen-state.js'

/** The keys that mean the same in the list and in the details. */
export function act(state: ScreenState, text: string, { copy }: KeyTarget): KeyOutcome {
  switch (text) {
    case 'q':
      return { state, effect: { kind: 'quit' } }
    case '?':
    case 'h':
      return { state: { ...state, mode: { kind: 'help', scroll: 0 } } }
    case 'r':
      return { state, effect: { kind: 'refresh' } }
    case 'p':
      return { state: { ...state, mode: { kind: 'ask-dataset', text: '' } } }
    case 'l':
      if (!copy) return { state: note(state, 'no copy to lock here') }
      if (copy.lock) return { state: note(state, `${copy.dataset} is locked by ${copy.lock.by} already`) }
      return {
        state: {
          ...state,
          mode: { kind: 'ask-lock-reason', copyId: copy.copyId, dataset: copy.dataset, text: '' },
        },
      }
    case 'u':
      if (!copy?.lock) return { state: note(state, copy ? `${copy.dataset} is not locked` : 'no copy here') }
      return { state, effect: { kind: 'unlock', copyId: copy.copyId, dataset: copy.dataset } }
    case 'e': {
      if (!copy) return { state: note(state, 'no copy to evict here') }
      const keepers = findKeepers(copy)
      if (keepers.length > 0) {
        const text = `${copy.dataset} on ${copy.node} stays: kept by ${keepers.join(', ')}`
        return { state: { ...state, message: { text, isError: true } } }
      }
      const question = `Evict ${copy.dataset} from ${copy.node} (${formatByteSize(copy.chargedBytes)})? y/N`
      return {
        state: {
          ...state,
          mode: { kind: 'confirm-evict', copyId: copy.copyId, dataset: copy.dataset, question },
        },
      }
    }
    default:
      return { state }
  }
}
