import { describeReport, type EgressPrice, parsePrice } from '../../cache/accounting/describe-report.js'
import { formatJob } from '../../cache/accounting/format-jobs.js'
import { type Report, readReport } from '../../cache/accounting/read-report.js'
import type { Cache } from '../../cache/cache.js'
import { DscError } from '../../failure/dsc-error.js'
import { parseDuration } from '../../model/duration.js'
import { FreshAnswers } from '../../platform/fresh-answers.js'

/** How long a report stays fresh, in ms: pages ask again and again, and the history can be long. */
const KEPT_MS = 60_000
/** Maximum number of kept reports. */
const MAX_KEPT = 8
/** Maximum number of rows of each list in an answer. */
const MAX_ROWS = 100
/** Maximum number of jobs in an answer: those whose GPUs waited longest. */
const MAX_JOBS = 20
/** The shortest wait that is listed, in ms: below, it reads as 0 s. */
const NOTABLE_MS = 1000

/** Reports for the page, as in `dsc report --json`, with long lists cut, and of each job what `dsc report --job` says. */
export class PageReports {
  readonly #cache: Pick<Cache, 'record' | 'nowMs'>
  readonly #kept = new FreshAnswers<Report>({ freshMs: KEPT_MS, most: MAX_KEPT })

  constructor(cache: Pick<Cache, 'record' | 'nowMs'>) {
    this.#cache = cache
  }

  /** Answers `since` (default `7d`), `node` and `price`. Throws USAGE for an invalid value. */
  async describe(query: URLSearchParams) {
    const sinceMs = check('since', query.get('since') || '7d', parseDuration)
    const rawPrice = query.get('price') || undefined
    const price: EgressPrice | undefined =
      rawPrice === undefined ? undefined : { perGigabyte: check('price', rawPrice, parsePrice) }
    const report = await this.#read({ sinceMs, node: query.get('node') || undefined })
    const { datasets, waits, refusals, unused, jobs, ...rest } = describeReport(report, price)
    return {
      ...rest,
      datasets: datasets.slice(0, MAX_ROWS),
      waits: waits.filter(({ waitedMs }) => waitedMs >= NOTABLE_MS).slice(0, MAX_ROWS),
      refusals: refusals.slice(0, MAX_ROWS),
      unused: unused.slice(0, MAX_ROWS),
      jobs: jobs.slice(0, MAX_JOBS).map((job) => ({ ...job, said: formatJob(job) })),
      totals: {
        datasets: datasets.length,
        refusals: refusals.length,
        unused: unused.length,
        jobs: jobs.length,
      },
    }
  }

  #read(asked: { readonly sinceMs: number; readonly node: string | undefined }): Promise<Report> {
    const { record } = this.#cache
    const nowMs = this.#cache.nowMs()
    const { sinceMs, node } = asked
    return this.#kept.get(JSON.stringify(asked), () =>
      readReport(record, { sinceMs: nowMs - sinceMs, nowMs, node }),
    )
  }
}

function check<Value>(name: string, raw: string, parse: (raw: string) => Value): Value {
  try {
    return parse(raw.slice(0, 50))
  } catch (error) {
    throw new DscError('USAGE', `${name}: ${(error as Error).message}`)
  }
}
