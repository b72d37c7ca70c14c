import type { CopyUse } from '../../model/copy.js'
import type { Cache } from '../cache.js'
import { findReadersOf } from '../find-readers.js'
import type { Holder } from './explain-refusal.js'

/** Marks the copies that not everybody may read. */
export function hideGuarded(cache: Pick<Cache, 'declared'>, copies: readonly CopyUse[]): readonly Holder[] {
  return copies.map((copy) => ({ ...copy, isHidden: findReadersOf(cache, copy) !== undefined }))
}
