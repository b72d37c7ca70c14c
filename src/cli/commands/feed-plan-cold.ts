import { DscError } from '../../failure/dsc-error.js'
import { type ColdStart, planColdStart } from '../../feed/plan/cold-start.js'
import type { RequestCost } from '../../feed/plan/request-cost.js'
import { listSamples } from '../../feed/samples/listed-samples.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatDuration } from '../../model/duration.js'
import { formatCount } from '../../model/format-count.js'
import type { FormatName } from '../../model/sample-formats.js'
import { listSource } from '../../open/list-source.js'
import type { CliContext } from '../context.js'

/** What `dsc feed plan --cold` was asked. */
interface ColdPlanRequest {
  readonly target: string
  readonly split: string | undefined
  readonly extensions: readonly string[] | undefined
  readonly format: FormatName | undefined
  readonly globalBatch: number
  readonly stepMs: number | undefined
  readonly cost: RequestCost | undefined
}

/** Says how the first epoch of a dataset goes on a node that has nothing of it. Lists the source, and fetches nothing. */
export async function showColdPlan(context: CliContext, request: ColdPlanRequest): Promise<void> {
  const { target, split, extensions, globalBatch, stepMs, cost } = request
  if (cost === undefined)
    throw new DscError('USAGE', 'how long a dataset takes to come depends on its store', {
      hint: '--fixed-ms 20 --bandwidth 120MB/s: what an object takes however small it is, and what the link carries',
    })
  const { dataset, files, listMs } = await listSource(context, target, split)
  const format = request.format ?? dataset.format
  const listed = listSamples(files, { folder: target, extensions, format })
  const isFedWhileArriving = listed.kind === 'files'
  const sampleCount = listed.kind === 'files' ? listed.table.count : files.length
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0)
  const measured = { sampleCount, totalBytes, globalBatch, listMs, cost, stepMs, isFedWhileArriving }
  const plan = planColdStart(measured)
  const result = {
    dataset: target,
    objects: files.length,
    bytes: totalBytes,
    listMs,
    isFedWhileArriving,
    ...plan,
  }
  context.report.result(result, () => formatColdPlan(result, BEGINNINGS[listed.kind]))
}

/** When the first batch can come, by what the files hold. */
const BEGINNINGS = {
  files: '',
  shards: ', or sooner: what is in tar shards is known when their headers are',
  rows: ': rows of files are fed once they are here',
} as const

function formatColdPlan(
  plan: ColdStart & {
    readonly dataset: string
    readonly objects: number
    readonly bytes: number
  },
  beginning: string,
): string {
  const time = (ms: number) => formatDuration(Math.max(1000, Math.round(ms / 1000) * 1000))
  const lines = [
    `${plan.dataset}: ${formatCount(plan.objects, 'object')}, ${formatByteSize(plan.bytes)}, none of it here`,
    `first batch after        ${time(plan.firstBatchMs)}${beginning}`,
    `whole copy after         ${time(plan.wholeMs)}`,
  ]
  if (plan.epochMs !== null && plan.waitMs !== null)
    lines.push(`first epoch takes        ${time(plan.epochMs)}, of which training waits ${time(plan.waitMs)}`)
  return lines.join('\n')
}
