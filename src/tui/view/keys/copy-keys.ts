import { findKeepers } from '../../../cache/status/explain-copy.js'
import { formatByteSize } from '../../../model/byte-size.js'
import type { CopyLock, CopyUse } from '../../../model/copy.js'
import type { ScreenState } from '../screen-state.js'
import { askCommand, note, refuse } from './change-screen.js'
import { askFirst, endShown } from './end-keys.js'
import type { KeyOutcome, KeyTarget } from './key-press.js'

/** Keys with the same meaning in the list and in the details. */
export function act(state: ScreenState, text: string, target: KeyTarget): KeyOutcome {
  const { copy, ownNode } = target
  switch (text) {
    case 'q':
      return { state, effect: { kind: 'quit' } }
    case '?':
    case 'h':
      return { state: { ...state, mode: { kind: 'help', scroll: 0 } } }
    case '!':
      return { state: { ...state, mode: { kind: 'troubles', scroll: 0 } } }
    case ':':
      return { state: askCommand(state) }
    case 'r':
      return { state, effect: { kind: 'refresh' } }
    case 'x':
      return endShown(state, target)
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
      return askUnlock(state, copy, copy.lock)
    case 'e': {
      if (!copy) return { state: note(state, 'no copy to evict here') }
      const obstacle = findObstacle(copy, ownNode)
      if (obstacle !== undefined) return refuse(state, obstacle)
      const question = `Evict ${copy.dataset} from ${copy.node} (${formatByteSize(copy.chargedBytes)})?`
      const action = { kind: 'evict', copyId: copy.copyId, dataset: copy.dataset } as const
      return askFirst(state, { question, action, refusal: 'not evicted' })
    }
    default:
      return { state }
  }
}

/** A lock is often a colleague's: says whose it is, and why, before it goes. */
function askUnlock(state: ScreenState, { copyId, dataset, node }: CopyUse, lock: CopyLock): KeyOutcome {
  const question = `Remove ${lock.by}'s lock of ${dataset} on ${node} ("${lock.reason}")?`
  const action = { kind: 'unlock', copyId, dataset } as const
  return askFirst(state, { question, action, refusal: `${dataset} stays locked` })
}

/** Why the copy cannot be evicted from here; undefined if it can. */
function findObstacle(copy: CopyUse, ownNode: string): string | undefined {
  const keepers = findKeepers(copy)
  if (keepers.length > 0) return `${copy.dataset} on ${copy.node} stays: kept by ${keepers.join(', ')}`
  if (copy.node === ownNode) return undefined
  return `${copy.dataset} is on ${copy.node}, this is ${ownNode}: evict it there, with dsc evict ${copy.dataset}`
}
