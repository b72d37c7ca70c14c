import type { TransferStatus } from '../../../cache/status/compose-status.js'
import { findKeepers } from '../../../cache/status/explain-copy.js'
import { estimateLeftMs, findRate } from '../../../cache/status/transfer-rates.js'
import { formatByteSize } from '../../../model/byte-size.js'
import type { CopyUse } from '../../../model/copy.js'
import { formatCount } from '../../../model/format-count.js'
import { formatPercent, formatSpan } from '../text/format-cells.js'
import { type Sign, splitBar } from '../text/glyphs.js'
import { type Colour, type Span, span } from '../text/styled-line.js'
import type { Cell, DrawContext } from './list-rows.js'

/** `ready`, `staging 43%`, …, in the colour of the state. */
export function drawState(copy: CopyUse): Span {
  switch (copy.state) {
    case 'ready':
      return span('ready', { color: 'green' })
    case 'reserved':
      return copy.isBeingStaged ? span('listing', { color: 'cyan' }) : span('stopped', { color: 'yellow' })
    case 'staging': {
      const percent = formatPercent(copy.writtenBytes, copy.contentBytes)
      return copy.isBeingStaged
        ? span(`staging ${percent}`, { color: 'cyan' })
        : span(`stopped at ${percent}`, { color: 'yellow' })
    }
    case 'evicting':
      return span('evicting', { color: 'yellow' })
  }
}

/** The keepers of a copy, in short: `2 leases`, `lock`, `lock +2`; `idle`: it may be evicted. */
export function drawKeepers(copy: CopyUse): Span {
  const keepers = findKeepers(copy)
  const isLocked = keepers.includes('lock')
  if (copy.referenceCount > 0) {
    return isLocked
      ? span(`lock +${copy.referenceCount.toLocaleString('en-US')}`, { color: 'yellow' })
      : span(formatCount(copy.referenceCount, 'lease'), { color: 'green' })
  }
  if (isLocked) return span('lock', { color: 'yellow' })
  if (keepers.includes('no source')) return span('no source', { color: 'yellow' })
  if (keepers.includes('stager')) return span('stager', { color: 'cyan' })
  return span('idle', { isDim: true })
}

/** Conditions of a copy, in the order in which a list shows them. */
export const CONDITIONS = ['staging', 'left', 'evicting', 'used', 'locked', 'no source', 'idle'] as const
/** One of `CONDITIONS`. */
export type Condition = (typeof CONDITIONS)[number]

/** Finds what the copy is. */
export function findCondition(copy: CopyUse): Condition {
  if (copy.state === 'reserved' || copy.state === 'staging') return copy.isBeingStaged ? 'staging' : 'left'
  if (copy.state === 'evicting') return 'evicting'
  if (copy.lock) return 'locked'
  if (copy.referenceCount > 0) return 'used'
  return copy.source === null ? 'no source' : 'idle'
}

const LOOKS: Readonly<Record<Condition, { readonly sign: Sign; readonly color?: Colour }>> = {
  staging: { sign: 'staging', color: 'cyan' },
  left: { sign: 'left', color: 'yellow' },
  evicting: { sign: 'idle', color: 'yellow' },
  used: { sign: 'used', color: 'green' },
  locked: { sign: 'locked', color: 'magenta' },
  'no source': { sign: 'locked', color: 'magenta' },
  idle: { sign: 'idle' },
}

/** Facts for the cell of a copy, besides the copy. */
interface ConditionFacts {
  readonly transfer: TransferStatus | undefined
  /** Its place among the idle copies of its node. */
  readonly turn: 'first' | 'last' | undefined
}

/** `● in use (2 leases)`, `○ idle, goes first`, or the bar of a staging: a sign, a colour and words. */
export function drawCondition(
  copy: CopyUse,
  facts: ConditionFacts,
  width: number,
  context: DrawContext,
): Cell {
  const condition = findCondition(copy)
  const { sign, color } = LOOKS[condition]
  const mark = `${context.glyphs.signs[sign]} `
  if (condition === 'staging' && copy.state === 'staging')
    return [span(mark, { color: 'cyan' }), ...drawProgress(copy, facts, width - 2, context)]
  return span(`${mark}${describe(copy, condition, facts)}`, color ? { color } : { isDim: true })
}

function describe(copy: CopyUse, condition: Condition, { turn }: ConditionFacts): string {
  const leases = copy.referenceCount
  switch (condition) {
    case 'staging':
      return 'listing'
    case 'left':
      return copy.state === 'reserved'
        ? 'stopped'
        : `stopped at ${formatPercent(copy.writtenBytes, copy.contentBytes)}`
    case 'used':
      return leases === 1 ? 'in use' : `in use (${formatCount(leases, 'lease')})`
    case 'locked':
      return leases > 0 ? `locked, ${formatCount(leases, 'lease')}` : `locked by ${copy.lock?.by}`
    case 'idle':
      return turn ? `idle, goes ${turn}` : 'idle'
    default:
      return condition
  }
}

/** The bar with the percentage and the time left; a staging without a byte for long is told in red. */
function drawProgress(
  copy: CopyUse,
  { transfer }: ConditionFacts,
  width: number,
  { throughput, glyphs }: DrawContext,
): readonly Span[] {
  const rate = findRate(throughput.progress, copy.copyId)
  const leftMs = estimateLeftMs(copy.contentBytes - copy.writtenBytes, rate)
  const isStalled = rate !== undefined && rate <= 0 && transfer?.state === 'staging'
  const end = isStalled ? ' stalled' : ` ${leftMs === undefined ? '' : formatSpan(leftMs)}`.padEnd(5)
  const percent = formatPercent(copy.writtenBytes, copy.contentBytes).padStart(4)
  const cells = Math.min(24, width - percent.length - end.length - 1)
  const numbers = [span(percent, { color: 'cyan' }), span(end, isStalled ? { color: 'red' } : {})]
  if (cells < 3) return numbers
  const { filled, empty } = splitBar(
    copy.contentBytes > 0 ? copy.writtenBytes / copy.contentBytes : 0,
    cells,
    glyphs,
  )
  return [span(filled, { color: 'cyan' }), span(glyphs.empty.repeat(empty), { isDim: true }), ...numbers]
}

/** The rate of a staging: `128 MiB/s`, `stalled`, or `-`. */
export function drawRate(copyId: string, isStaging: boolean, { throughput }: DrawContext): Span {
  const rate = findRate(throughput.progress, copyId)
  if (rate === undefined) return span('-', { isDim: true })
  if (rate <= 0 && isStaging) return span('stalled', { color: 'red' })
  return span(`${formatByteSize(rate)}/s`)
}
