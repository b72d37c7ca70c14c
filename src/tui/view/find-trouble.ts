import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { formatByteSize } from '../../model/byte-size.js'

/**
 * The latest trouble that needs a person, in one sentence: a job that was refused room, or a disk that others
 * filled beyond `minFree`. Undefined: nothing is wrong. A cache that is full is not: idle copies make room.
 */
export function findTrouble({ waits, nodes }: Pick<StatusSnapshot, 'waits' | 'nodes'>): string | undefined {
  const refused = waits.filter(({ kind }) => kind === 'room')
  const latest = refused.at(-1)
  if (latest) {
    const why = latest.reason.split('\n')[0]!.trim()
    return `${refused.length} refused: ${latest.task} wants ${latest.dataset} on ${latest.node} (${why})`
  }
  const short = nodes.filter(
    ({ usage: { free } }) => free.minFreeBytes !== null && free.freeBytes < free.minFreeBytes,
  )
  const [first] = short
  if (!first) return undefined
  const { freeBytes, minFreeBytes } = first.usage.free
  const others = short.length === 1 ? '' : ` and ${short.length - 1} more`
  return `disk short: ${first.node}${others} has ${formatByteSize(freeBytes)} free of minFree ${formatByteSize(minFreeBytes ?? 0)}`
}
