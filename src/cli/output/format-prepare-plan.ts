import type { PreparePlan } from '../../cache/prepare/plan-prepare.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'

/** Formats a plan for people, most important line first. */
export function formatPreparePlan(plan: PreparePlan): string {
  const what = `${plan.dataset}: ${formatCount(plan.files, 'file')}, ${formatByteSize(plan.contentBytes)} (at most ${formatByteSize(plan.diskBytes)} on disk)`
  switch (plan.outcome) {
    case 'ready':
      return `${plan.dataset} is ready: ${plan.path}`
    case 'wait':
      return `${plan.dataset} is being staged by another process: nothing to fetch, prepare would wait`
    case 'fits':
      return `${what}\nwould download it and evict nothing`
    case 'evicts':
      return [
        what,
        'would evict first:',
        ...plan.evictions.map(
          ({ dataset, diskBytes, reason }) => `  ${dataset} ${formatByteSize(diskBytes)} (${reason})`,
        ),
      ].join('\n')
    case 'refused':
      return [
        what,
        'would be refused, and nothing deleted:',
        ...plan.shortfalls.map(
          ({ limit, allowed, taken, missing }) =>
            `  ${limit} allows ${amount(limit, allowed)}, ${amount(limit, taken)} taken, ${amount(limit, missing)} missing`,
        ),
        `  evictable: ${formatByteSize(plan.evictableBytes)}`,
        ...plan.held.map((phrase) => `  held: ${phrase}`),
      ].join('\n')
  }
}

function amount(limit: string, value: number): string {
  return limit === 'maxDatasets' || limit === 'inodes' ? String(value) : formatByteSize(value)
}
