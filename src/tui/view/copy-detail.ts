import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import { findEvictionRank, findKeepers } from '../../cache/status/explain-copy.js'
import { formatLayout } from '../../cache/status/find-layouts.js'
import { redactUrl } from '../../failure/redact.js'
import { formatByteSize } from '../../model/byte-size.js'
import { type CopyUse, formatStripe } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatHolder, isLeaseLive, type PlacedLease } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { describeKeeping } from './describe-keeping.js'
import { formatReader } from './format-transfer.js'
import { drawRate, drawState } from './lists/copy-state.js'
import type { DrawContext } from './lists/list-rows.js'
import { formatMoment, formatShare, formatSpan } from './text/format-cells.js'
import { splitBar } from './text/glyphs.js'
import { fitLine, type Line, type Span, span } from './text/styled-line.js'
import { withoutControls, wrapText } from './text/text-cells.js'

const LABEL_CELLS = 11

/** The facts shown about a copy. */
interface CopyDetail {
  readonly copy: CopyUse
  readonly snapshot: StatusSnapshot
  /** Its events; undefined while they are being read. */
  readonly history: readonly RecordEvent[] | undefined
}

interface Fact {
  readonly label: string
  readonly value: Span
}

/** All facts about one copy: identity, keepers, eviction rank, users, events. */
export function drawCopyDetail(detail: CopyDetail, width: number, context: DrawContext): readonly Line[] {
  const { copy, snapshot, history } = detail
  const leases = snapshot.leases.filter((lease) => lease.copyId === copy.copyId)
  return [
    [span(copy.dataset, { isBold: true }), span(` on ${copy.node}`)],
    [],
    ...drawStaging(detail, width, context),
    ...listFacts(detail, context).flatMap((fact) => drawFact(fact, width)),
    [],
    ...listKeeping(detail, context).flatMap((fact) => drawFact(fact, width)),
    [],
    [span('LEASES', { isDim: true })],
    ...(leases.length === 0 ? [drawNothing('none')] : leases.map((lease) => drawLease(lease, context))),
    [],
    [span('HISTORY', { isDim: true })],
    ...(history?.flatMap((event) => drawEvent(event, width, context)) ?? [drawNothing('reading')]),
    ...(history?.length === 0 ? [drawNothing('no events')] : []),
  ].map((line) => fitLine(line, width))
}

/** The bar of a download on a line of its own, its source, and the jobs that wait for it. */
function drawStaging({ copy, snapshot }: CopyDetail, width: number, context: DrawContext): readonly Line[] {
  const transfer = snapshot.transfers.find(({ copyId }) => copyId === copy.copyId)
  if (transfer?.state !== 'staging') return []
  const { writtenBytes, contentBytes, servedBy, stager, waitingTasks } = transfer
  const bar = splitBar(writtenBytes / Math.max(1, contentBytes), Math.max(3, width - 1), context.glyphs)
  const facts = [
    { label: 'written', value: span(formatShare(writtenBytes, contentBytes)) },
    { label: 'rate', value: drawRate(copy.copyId, stager !== null, context) },
    { label: 'from', value: span(servedBy.join(', ') || 'the source') },
    { label: 'stager', value: stager === null ? span('none', { color: 'yellow' }) : span(stager) },
    { label: 'waiting', value: span(waitingTasks.length === 0 ? 'no job' : waitingTasks.join(', ')) },
  ]
  return [
    [span(bar.filled, { color: 'cyan' }), span(context.glyphs.empty.repeat(bar.empty), { isDim: true })],
    [],
    ...facts.flatMap((fact) => drawFact(fact, width)),
    [],
  ]
}

function listFacts({ copy, snapshot }: CopyDetail, { nowMs }: DrawContext): readonly Fact[] {
  const by = copy.lastTask === null ? '' : ` by ${copy.lastTask}`
  const size = `${formatByteSize(copy.chargedBytes)} on disk, ${formatByteSize(copy.contentBytes)} in ${formatCount(copy.files, 'file')}`
  const source = copy.source ? redactUrl(copy.source.source) : 'none known: it was on disk before (adopted)'
  const { readers = [] } = snapshot.transfers.find(({ copyId }) => copyId === copy.copyId) ?? {}
  const facts: readonly (readonly [string, string | Span | undefined])[] = [
    ['state', drawState(copy)],
    ['size', copy.state === 'reserved' ? undefined : size],
    ['version', copy.version ?? 'not known yet'],
    ['stripe', describeStripe(copy, snapshot)],
    ['source', source],
    ['path', copy.path],
    ['used', `${formatSpan(nowMs - copy.lastUsedAtMs)} ago${by}`],
    [
      copy.state === 'ready' ? 'staged' : 'started',
      `${formatSpan(nowMs - (copy.readyAtMs ?? copy.createdAtMs))} ago from ${copy.origin}`,
    ],
    ...readers.map((reader) => ['read by', formatReader(reader)] as const),
  ]
  return facts.flatMap(([label, value]) =>
    value === undefined ? [] : [{ label, value: typeof value === 'string' ? span(value) : value }],
  )
}

function describeStripe({ copyId, stripe }: CopyUse, { layouts }: StatusSnapshot): string | undefined {
  if (!stripe) return undefined
  const layout = layouts.find(({ stripes }) => stripes.some((other) => other.copyId === copyId))
  return `${formatStripe(stripe)} over ${stripe.nodes.join(' ')}${layout ? `; ${formatLayout(layout)}` : ''}`
}

function listKeeping({ copy, snapshot }: CopyDetail, { nowMs }: DrawContext): readonly Fact[] {
  const onNode = snapshot.copies.filter(({ node }) => node === copy.node)
  const kept = { copy, keepers: findKeepers(copy), rank: findEvictionRank(copy, onNode) }
  return describeKeeping(kept, nowMs).map(({ label, text }) => ({
    label,
    value: span(text, label === 'kept by' ? { color: 'green' } : {}),
  }))
}

function drawFact({ label, value }: Fact, width: number): readonly Line[] {
  return wrapText(value.text, width - LABEL_CELLS).map((text, at) => [
    span((at === 0 ? label : '').padEnd(LABEL_CELLS), { isDim: true }),
    { ...value, text },
  ])
}

function drawLease(lease: PlacedLease, { nowMs, glyphs }: DrawContext): Line {
  const isLive = isLeaseLive(lease, nowMs)
  const purpose = lease.purpose === 'use' ? '' : ` (${lease.purpose})`
  const holder = lease.holder.kind === 'ttl' ? '' : ` ${glyphs.dot} ${formatHolder(lease)}`
  const since = ` ${glyphs.dot} since ${formatSpan(nowMs - lease.createdAtMs)}`
  const left = lease.expiresAtMs === null ? '' : `, ends in ${formatSpan(lease.expiresAtMs - nowMs)}`
  const text = `${lease.task}${purpose}${holder}${since}${isLive ? left : ', expired'}`
  return [span(withoutControls(text), isLive ? {} : { color: 'yellow' })]
}

function drawEvent(event: RecordEvent, width: number, context: DrawContext): readonly Line[] {
  const time = formatMoment(event.atMs, context.nowMs, context.utcOffsetMinutes)
  return [
    [span(`${time} `, { isDim: true }), span(event.kind.replaceAll('-', ' '))],
    ...wrapText(event.reason, width - 2).map((text): Line => [span(`  ${text}`, { isDim: true })]),
  ]
}

function drawNothing(text: string): Line {
  return [span(text, { isDim: true })]
}
