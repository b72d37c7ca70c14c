import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { Cache } from '../../cache/cache.js'
import type { JoinedRequest } from '../../cache/leases/take-ready-copy.js'
import { type Prepared, type PrepareProgress, prepareDataset } from '../../cache/prepare/prepare-dataset.js'
import { cancelReservation, type Reservation, reserveDataset } from '../../cache/prepare/reserve-dataset.js'
import { DscError } from '../../failure/dsc-error.js'
import { readBody } from '../../frames/body.js'
import { parseByteRate } from '../../model/byte-rate.js'
import { parseStripe } from '../../model/copy.js'
import { type Dataset, parseDatasetName } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { isDialect } from '../../model/told-dialect.js'
import { answerInLines, type ErrorLine } from '../server/answer-in-lines.js'
import { asUsage, expected, fields, flag, readInput } from './fields.js'
import { parseLeaseRequest } from './parse-lease-request.js'

const text = z.string(expected('a text'))
const texts = z.array(text, expected('a list of texts'))

/** The definition that a caller of an agent sends: it decides where files go, and is written to the record. */
const calledDataset = z.looseObject(
  {
    name: text,
    source: text,
    endpoint: text.optional(),
    region: text.optional(),
    profile: text.optional(),
    format: text.optional(),
    pathStyle: flag.optional(),
    anonymous: flag.optional(),
    requesterPays: flag.optional(),
    dialect: z.custom(isDialect, expected('delimiter, quote or header of CSV')).optional(),
    include: texts.default([]),
    exclude: texts.default([]),
    columns: texts.optional(),
    readers: texts.optional(),
  },
  expected('an object'),
)
const prepareCall = fields({
  dataset: calledDataset,
  lease: z.unknown().optional(),
  isRefresh: flag.default(false),
  isPrefetch: flag.default(false),
  sharedWith: texts.default([]),
  bandwidthBytesPerSecond: z.number(expected('a number')).optional(),
  stripe: z.unknown().optional(),
  version: text.optional(),
  isRelisted: flag.default(false),
})

/** A request to an agent to prepare a dataset on its node. */
export interface PrepareCall extends JoinedRequest {
  readonly isRefresh: boolean
  /** As in `planEviction`; absent from agents of earlier versions, which evict as for any job. */
  readonly isPrefetch?: boolean | undefined
  /** All nodes that are asked to prepare the dataset at this time. */
  readonly sharedWith: readonly string[]
  /** Overrides this node's own limit. */
  readonly bandwidthBytesPerSecond?: number | undefined
  /** Lists the source again, even if an earlier attempt already listed it. */
  readonly isRelisted?: boolean
}

/** One line of the answer. The last line is not progress. */
export type PrepareLine =
  | { readonly progress: PrepareProgress }
  | { readonly prepared: Prepared }
  | { readonly reserved: Reservation }
  | { readonly cancelled: string }
  | ErrorLine

const MAX_BODY_BYTES = 256 * 1024

interface Answering {
  readonly cache: Cache
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly stopping: AbortSignal
  /** Writes failures to the agent's log. */
  readonly note: (sentence: string) => void
}

/** Answers `POST /v2/prepare` with lines of JSON. A client that hangs up interrupts the download; it can resume. */
export async function answerPrepare(answering: Answering): Promise<void> {
  const { cache, request } = answering
  const call = parseCall(await readJson(request), cache.nowMs())
  await answerInLines(answering, async (options) => {
    const limited = limitBandwidth(cache, call.bandwidthBytesPerSecond)
    return { prepared: await prepareDataset(limited, { ...call, mayWait: true }, options) }
  })
}

/** Answers `POST /v1/reserve`: reserves room for a copy without downloading it. */
export async function answerReserve(answering: Answering): Promise<void> {
  const { cache, request } = answering
  const call = parseCall(await readJson(request), cache.nowMs())
  await answerInLines(answering, async (options) => ({
    reserved: await reserveDataset(cache, call, options),
  }))
}

/** Answers `POST /v1/cancel`: cancels a reservation. */
export async function answerCancel(answering: Answering): Promise<void> {
  const raw = (await readJson(answering.request)) as { readonly copyId?: unknown } | null
  const copyId = String(raw?.copyId)
  await answerInLines(answering, async () => {
    await cancelReservation(answering.cache, copyId)
    return { cancelled: copyId }
  })
}

/** The cache with this limit instead of the node's own. */
export function limitBandwidth(cache: Cache, bandwidthBytesPerSecond: number | undefined): Cache {
  if (bandwidthBytesPerSecond === undefined) return cache
  return { ...cache, nodeBudget: { ...cache.nodeBudget, bandwidthBytesPerSecond } }
}

/** Reads the JSON of a call. Rejects with USAGE if it is no JSON, or longer than a call ever is. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request, MAX_BODY_BYTES)
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new DscError('USAGE', 'expected JSON in the body', { cause: error })
  }
}

/** Checks every field that decides where files go, who holds them, and for how long. */
function parseCall(raw: unknown, nowMs: number) {
  try {
    const call = readInput(prepareCall, raw)
    const { name, source } = call.dataset
    parseDatasetName(name)
    parseSourceUrl(source)
    if (call.bandwidthBytesPerSecond !== undefined) parseByteRate(call.bandwidthBytesPerSecond)
    return {
      ...call,
      dataset: call.dataset as unknown as Dataset,
      lease: parseLeaseRequest(call.lease, nowMs),
      stripe: call.stripe === undefined ? undefined : parseStripe(call.stripe),
    } satisfies PrepareCall
  } catch (error) {
    throw asUsage(error)
  }
}
