import { redactUrl } from '../../failure/redact.js'
import { formatByteSize } from '../../model/byte-size.js'
import { type CopyUse, formatStripe } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatHolder, isLeaseLive } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { StatusSnapshot } from '../../stage/plan/compose-status.js'
import { findEvictionRank, findKeepers } from '../../stage/plan/explain-copy.js'
import { formatLayout } from '../../stage/plan/find-layouts.js'
import { drawState } from './copy-rows.js'
import { describeKeeping } from './describe-keeping.js'
import { formatMoment, formatSpan } from './format-cells.js'
import type { DrawContext } from './list-rows.js'
import { fitLine, type Line, type Span, span } from './styled-line.js'
import { withoutControls, wrapText } from './text-cells.js'

const LABEL_CELLS = 11

/** All that is known of one copy: what it is, what keeps it, whether it goes next, who uses it, what happened. */
export function drawCopyDetail(
  copy: CopyUse,
  snapshot: StatusSnapshot,
  history: readonly RecordEvent[] | undefined,
  width: number,
  context: DrawContext,
): readonly Line[] {
  const lines: Line[] = [[span(copy.dataset, { isBold: true }), span(` on ${copy.node}`)], []]
  const fact = (label: string, value: string | Span) => {
    const part = typeof value === 'string' ? span(value) : value
    for (const [at, text] of wrapText(part.text, width - LABEL_CELLS).entries()) {
      lines.push([span((at === 0 ? label : '').padEnd(LABEL_CELLS), { isDim: true }), { ...part, text }])
    }
  }
  fact('state', drawState(copy))
  if (copy.state !== 'reserved') {
    fact(
      'size',
      `${formatByteSize(copy.chargedBytes)} on disk, ${formatByteSize(copy.contentBytes)} in ${formatCount(copy.files, 'file')}`,
    )
  }
  fact('version', copy.version ?? 'not known yet')
  if (copy.stripe) {
    const layout = snapshot.layouts.find(({ stripes }) =>
      stripes.some(({ copyId }) => copyId === copy.copyId),
    )
    const state = layout ? `; ${formatLayout(layout)}` : ''
    fact('stripe', `${formatStripe(copy.stripe)} over ${copy.stripe.nodes.join(' ')}${state}`)
  }
  fact('source', copy.source ? redactUrl(copy.source.source) : 'none known: it was on disk before (adopted)')
  fact('path', copy.path)
  fact(
    'used',
    `${formatSpan(context.nowMs - copy.lastUsedAtMs)} ago${copy.lastTask === null ? '' : ` by ${copy.lastTask}`}`,
  )
  fact(
    'staged',
    `${formatSpan(context.nowMs - (copy.readyAtMs ?? copy.createdAtMs))} ago from ${copy.origin}`,
  )
  lines.push([])
  const onNode = snapshot.copies.filter(({ node }) => node === copy.node)
  const rank = findEvictionRank(copy, onNode)
  for (const { label, text } of describeKeeping(copy, findKeepers(copy), rank, context.nowMs)) {
    fact(label, span(text, label === 'kept by' ? { color: 'green' } : {}))
  }
  lines.push([], [span('LEASES', { isDim: true })])
  const leases = snapshot.leases.filter((lease) => lease.copyId === copy.copyId)
  if (leases.length === 0) lines.push([span('none', { isDim: true })])
  for (const lease of leases) {
    const isLive = isLeaseLive(lease, context.nowMs)
    const purpose = lease.purpose === 'use' ? '' : ` (${lease.purpose})`
    const ends =
      lease.expiresAtMs === null
        ? ''
        : isLive
          ? `, ends in ${formatSpan(lease.expiresAtMs - context.nowMs)}`
          : ', expired'
    const holder = lease.holder.kind === 'ttl' ? '' : ` ${context.glyphs.dot} ${formatHolder(lease)}`
    const since = ` ${context.glyphs.dot} since ${formatSpan(context.nowMs - lease.createdAtMs)}`
    lines.push([
      span(
        withoutControls(`${lease.task}${purpose}${holder}${since}${ends}`),
        isLive ? {} : { color: 'red' },
      ),
    ])
  }
  lines.push([], [span('HISTORY', { isDim: true })])
  if (history === undefined) lines.push([span('reading', { isDim: true })])
  else if (history.length === 0) lines.push([span('nothing noted', { isDim: true })])
  for (const event of history ?? []) {
    const time = formatMoment(event.atMs, context.nowMs, context.utcOffsetMinutes)
    lines.push([span(`${time} `, { isDim: true }), span(event.kind)])
    for (const text of wrapText(event.reason, width - 2)) lines.push([span(`  ${text}`, { isDim: true })])
  }
  return lines.map((line) => fitLine(line, width))
}
