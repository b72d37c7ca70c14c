import type { TransferStatus } from '../../cache/status/compose-status.js'
import type { ReaderStatus } from '../../model/reader-status.js'
import { type Glyphs, UNICODE_GLYPHS } from './text/glyphs.js'

/** The receiving node, and the nodes that serve it: `gpu-02 ← gpu-01`. */
export function formatWay(
  { node, servedBy }: Pick<TransferStatus, 'node' | 'servedBy'>,
  glyphs: Pick<Glyphs, 'from'> = UNICODE_GLYPHS,
): string {
  return servedBy.length === 0 ? node : `${node} ${glyphs.from} ${servedBy.join(', ')}`
}

/** A reader of a copy during its download, and the objects that it waits for. */
export function formatReader({ name, ordered, waits, waitsFor }: ReaderStatus): string {
  const more = waits - waitsFor.length
  const keys = `${waitsFor.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return `${name || 'a reader'}: ${waits === 0 ? 'waits for nothing' : `waits for ${keys}`}, ${ordered} ordered ahead`
}
