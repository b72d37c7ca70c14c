import {
  type CopyExplanation,
  type DatasetExplanation,
  findArrivalMs,
} from '../../cache/status/explain-dataset.js'
import { formatLayout } from '../../cache/status/find-layouts.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatStripe } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatNodeList } from '../../model/format-node-list.js'
import { formatHolder } from '../../model/lease.js'
import type { RecordEvent } from '../../model/record-event.js'
import { describeKeeping } from '../../tui/view/describe-keeping.js'
import { formatSpan } from '../../tui/view/text/format-cells.js'
import { cellWidth, fitText } from '../../tui/view/text/text-cells.js'
import { formatTable, MAX_LINE_CELLS } from './text-table.js'

/** Maximum number of shown copies (the newest) and of next evictions (the first). */
const MAX_COPIES = 10
const MAX_VICTIMS = 20

/** Explains for people why a dataset is here, is gone, or never came. */
export function formatExplanation(
  explained: DatasetExplanation,
  nowMs: number,
  totalWidth: number | undefined,
): string {
  const copies = explained.copies.toSorted((a, b) => findArrivalMs(b.copy) - findArrivalMs(a.copy))
  const blocks = copies.slice(0, MAX_COPIES).map((copy) => explainCopy(copy, nowMs))
  const hidden = copies.slice(MAX_COPIES).map(({ copy }) => copy.node)
  if (hidden.length > 0) {
    const what = formatCount(hidden.length, 'older copy', 'older copies')
    blocks.push(`and ${what} on ${formatNodeList(hidden)}; --node <node> explains one, --json all`)
  }
  for (const layout of explained.layouts) {
    const repair = layout.stripes.some(({ state }) => state === 'missing')
      ? `; dsc repair ${layout.dataset}`
      : ''
    blocks.push(
      `striped over ${formatNodeList(layout.nodes)}, version ${layout.version.slice(0, 12)}: ${formatLayout(layout)}${repair}`,
    )
  }
  if (explained.copies.length === 0) blocks.push(`${explained.dataset} has no copy.`)
  const past = [
    describeEvent('last evicted', explained.lastEvicted, nowMs),
    describeEvent('last refused', explained.lastRefused, nowMs),
    describeEvent('last failure', explained.lastFailed, nowMs),
  ].filter((line) => line !== undefined)
  if (past.length > 0) blocks.push(past.join('\n'))
  else if (explained.copies.length === 0) blocks.push('No events in the history.')
  const victims = formatTable(
    explained.nextVictims.slice(0, MAX_VICTIMS),
    [
      { title: 'NEXT TO GO', minWidth: 12, cell: ({ dataset }) => dataset },
      { title: 'NODE', minWidth: 7, cell: ({ node }) => node },
      { title: 'SIZE', align: 'right', cell: ({ diskBytes }) => formatByteSize(diskBytes) },
      { title: 'USED', align: 'right', cell: ({ lastUsedAtMs }) => formatSpan(nowMs - lastUsedAtMs) },
      { title: 'WHY', minWidth: 16, cell: ({ reason }) => reason },
    ],
    totalWidth,
  )
  if (victims !== '') blocks.push(victims)
  return blocks.join('\n\n').split('\n').map(cutLine).join('\n')
}

function cutLine(line: string): string {
  return cellWidth(line) > MAX_LINE_CELLS ? fitText(line, MAX_LINE_CELLS).trimEnd() : line
}

function explainCopy(explained: CopyExplanation, nowMs: number): string {
  const { copy, origin, leases } = explained
  const lines = [
    `${copy.dataset} on ${copy.node}: ${copy.state}, ${formatByteSize(copy.chargedBytes)}, ${formatCount(copy.files, 'file')}, version ${copy.version?.slice(0, 12) ?? 'not known yet'}${copy.stripe ? `, stripe ${formatStripe(copy.stripe)}` : ''}`,
  ]
  const label = (name: string, text: string) => lines.push(`  ${name.padEnd(13)}${text}`)
  if (origin) {
    const by = origin.task === null ? '' : ` by ${origin.task}`
    label('here because', `${origin.kind} ${formatSpan(nowMs - origin.atMs)} ago${by}: ${origin.reason}`)
  } else label('here because', 'the history no longer says')
  for (const fact of describeKeeping(explained, nowMs)) {
    label(fact.label, fact.text)
    for (const lease of leases) {
      if (fact.keeper !== (lease.purpose === 'stage' ? 'stager' : 'leases')) continue
      label('', `  ${lease.task}, ${formatHolder(lease)}, since ${formatSpan(nowMs - lease.createdAtMs)}`)
    }
  }
  return lines.map((line) => line.trimEnd()).join('\n')
}

function describeEvent(what: string, event: RecordEvent | undefined, nowMs: number): string | undefined {
  if (!event) return undefined
  const by = event.task === null ? '' : ` for ${event.task}`
  return `${what.padEnd(15)}${formatSpan(nowMs - event.atMs)} ago on ${event.node}${by}: ${event.reason}`
}
