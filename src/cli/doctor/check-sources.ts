import { atEnd } from '../../failure/closers.js'
import { type DscError, isDscError } from '../../failure/dsc-error.js'
import { redactUrl } from '../../failure/redact.js'
import { askOnce } from '../../http/ask-once.js'
import type { Dataset } from '../../model/dataset.js'
import { formatDuration } from '../../model/duration.js'
import type { ListOptions, Source } from '../../sources/source.js'
import { type Check, failed, ok, skipped, warning } from './check.js'

/** Opens the source of a dataset. Opening and listing reject with a DscError. */
export type OpenSource = (dataset: Dataset) => Promise<Pick<Source, 'list' | 'close'>>

const SOURCE_TIMEOUT_MS = 20_000
const CLOCK_TIMEOUT_MS = 5_000

/** Lists one key of each dataset, all in parallel, each within a time limit. */
export async function checkSources(
  datasets: readonly Dataset[],
  open: OpenSource,
  signal: AbortSignal,
): Promise<Check[]> {
  if (datasets.length === 0)
    return [skipped('sources', 'no dataset is declared in dsc.yaml or was added to the record')]
  return Promise.all(datasets.map((dataset) => checkSource(dataset, open, signal)))
}

async function checkSource(dataset: Dataset, open: OpenSource, signal: AbortSignal): Promise<Check> {
  const name = `dataset ${dataset.name}`
  const source = redactUrl(dataset.source)
  const timeout = AbortSignal.timeout(SOURCE_TIMEOUT_MS)
  let last: DscError | undefined
  try {
    const key = await findOneKey(await open(dataset), {
      signal: AbortSignal.any([signal, timeout]),
      onRetry: (failure) => {
        last = failure
      },
    })
    return key === undefined
      ? failed(name, `${source} has no objects`, 'check the prefix, include and exclude')
      : ok(name, `${source} can be listed, for example ${JSON.stringify(key)}`)
  } catch (error) {
    if (timeout.aborted) {
      if (last !== undefined) return failed(name, last.message, last.hint)
      return failed(name, `${source} did not answer within ${formatDuration(SOURCE_TIMEOUT_MS)}`)
    }
    if (!isDscError(error)) throw error
    return failed(name, error.message, error.hint)
  }
}

async function findOneKey(
  source: Awaited<ReturnType<OpenSource>>,
  options: Pick<ListOptions, 'signal' | 'onRetry'>,
): Promise<string | undefined> {
  await using _ = atEnd(() => source.close())
  for await (const [first] of source.list(options)) if (first) return first.key
  return undefined
}

/** Clock difference above which S3 refuses requests, in ms; leases of two nodes disagree long before. */
const REFUSED_SKEW_MS = 15 * 60_000
const NOTICEABLE_SKEW_MS = 30_000

/** Compares this machine's clock with the Date header of each S3 server that the datasets use. */
export async function checkClocks(
  datasets: readonly Dataset[],
  { nowMs, signal }: { nowMs: () => number; signal: AbortSignal },
): Promise<Check[]> {
  const endpoints = new Set(datasets.flatMap((dataset) => endpointOf(dataset) ?? []))
  if (endpoints.size === 0) return [skipped('clock', 'no dataset in S3 to compare with')]
  return Promise.all(
    [...endpoints].map(async (endpoint) => {
      const name = `clock against ${redactUrl(endpoint)}`
      const askedMs = nowMs()
      const serverMs = await readServerTime(endpoint, signal)
      if (serverMs === undefined) return skipped(name, 'the server told no time')
      return judgeSkew(name, (askedMs + nowMs()) / 2 - serverMs)
    }),
  )
}

/** Judges how far this machine's clock is ahead of a server's, in ms. The header has a resolution of 1 s. */
export function judgeSkew(name: string, aheadMs: number): Check {
  const offMs = Math.max(0, Math.abs(aheadMs) - 1000)
  if (offMs <= NOTICEABLE_SKEW_MS) return ok(name, 'agrees')
  const detail = `this machine is ${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead' : 'behind'}`
  const hint = 'set the clock (chrony or systemd-timesyncd)'
  return offMs > REFUSED_SKEW_MS
    ? failed(name, `${detail}; S3 refuses requests beyond 15m`, hint)
    : warning(name, detail, hint)
}

function endpointOf({ source, endpoint, region }: Dataset): string | undefined {
  if (!source.startsWith('s3:')) return undefined
  return endpoint ?? `https://s3.${region ?? 'us-east-1'}.amazonaws.com/`
}

async function readServerTime(endpoint: string, signal: AbortSignal): Promise<number | undefined> {
  const url = new URL(endpoint)
  url.username = ''
  url.password = ''
  try {
    const answer = await askOnce(url.href, {
      method: 'HEAD',
      token: undefined,
      signal,
      connectTimeoutMs: CLOCK_TIMEOUT_MS,
      silenceMs: CLOCK_TIMEOUT_MS,
    })
    answer.destroy()
    const timeMs = Date.parse(answer.headers.date ?? '')
    return Number.isNaN(timeMs) ? undefined : timeMs
  } catch {
    // The source's own check reports an unreachable server; here it only means that there is no time.
    return undefined
  }
}
