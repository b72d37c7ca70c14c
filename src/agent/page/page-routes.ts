import type { Cache } from '../../cache/cache.js'
import { describeLease } from '../../cache/leases/describe-lease.js'
import { describeCopy, describeEvent, describeExplanation } from '../../cache/status/describe-status.js'
import { readExplanation } from '../../cache/status/read-explanation.js'
import type { StatusFilter } from '../../cache/status/status-snapshot.js'
import { DscError } from '../../failure/dsc-error.js'
import { isLoopback } from '../../model/host-port.js'
import { tryJson } from '../../model/try-json.js'
import type { Route, RouteCall } from '../server/agent-server.js'
import { isOwnName } from '../server/own-name.js'
import { PageDay } from './page-day.js'
import { PAGE_DATA_HEADERS, PAGE_PATH, sendPageFile } from './page-files.js'
import { PageReports } from './page-report.js'
import {
  parseCount,
  parseWindow,
  windowMatrix,
  windowNames,
  windowNodes,
  windowTransfers,
} from './page-windows.js'
import type { StatusPage } from './status-page.js'

/** Rules for access to the page. */
export interface PageAccess {
  /** Whether other machines have access, too. */
  readonly isEverywhere: boolean
  /** Whether the agent requires a token or a link. If not, the page must be opened under a loopback name. */
  readonly hasTokens: boolean
}

/** Rows of the record in one answer. */
const PAGE_ROWS = 100
const READ = ['GET', 'HEAD']

/** The page and the data it requests. All routes only read. */
export function pageRoutes(
  page: StatusPage,
  { record, nowMs }: Pick<Cache, 'record' | 'nowMs'>,
  access: PageAccess,
): readonly Route[] {
  const reports = new PageReports({ record, nowMs })
  const day = new PageDay({ record, nowMs })
  const data = (name: string, find: (query: URLSearchParams) => Promise<object>): Route => ({
    name: `page-${name}`,
    methods: READ,
    path: new RegExp(`^/v1/page/${name}$`),
    isPage: true,
    answer: async (call) => {
      if (isRefused(call, access)) return
      const found = await find(call.query)
      call.response.writeHead(200, { ...PAGE_DATA_HEADERS, 'content-type': 'application/json' })
      call.response.end(JSON.stringify({ dsc: 1, ...found }))
    },
  })
  return [
    {
      name: 'page',
      methods: READ,
      path: PAGE_PATH,
      isOpen: true,
      answer: async (call) => {
        if (!isRefused(call, access)) sendPageFile(call.parameters[0]!, call.request, call.response)
      },
    },
    {
      name: 'page-live',
      methods: ['GET'],
      path: /^\/v1\/page\/live$/,
      isPage: true,
      answer: async (call) => {
        if (!isRefused(call, access)) page.stream(call.response)
      },
    },
    data('nodes', async (query) => windowNodes(await page.status(), parseWindow(query))),
    data('transfers', async (query) => windowTransfers(await page.status(), parseWindow(query))),
    data('names', async (query) => windowNames(await page.status(), parseWindow(query))),
    data('day', async () => day.describe(await page.status())),
    data('matrix', async (query) =>
      windowMatrix(await page.status(), { rows: parseWindow(query), columns: parseWindow(query, 'node-') }),
    ),
    data('copies', async (query) => {
      const filter = { ...parseFilter(query), ...parseAfterCopy(query), limit: PAGE_ROWS }
      return describeRows(await record.listCopies(filter, nowMs()), describeCopy)
    }),
    data('leases', async (query) => {
      const filter = { ...parseFilter(query), ...parseAfterLease(query), limit: PAGE_ROWS }
      return describeRows(await record.listLeases(filter), describeLease)
    }),
    data('history', async (query) => {
      const count = parseCount(query, 'before', { from: 0, to: Number.MAX_SAFE_INTEGER, otherwise: -1 })
      const filter = { ...parseFilter(query), before: count < 0 ? undefined : count, limit: PAGE_ROWS }
      return describeRows(await record.listEvents(filter), describeEvent)
    }),
    data('report', (query) => reports.describe(query)),
    data('why', async (query) => {
      const { dataset, node } = parseFilter(query)
      if (dataset === undefined) throw new DscError('USAGE', 'dataset: expected the name of one')
      return describeExplanation(await readExplanation(record, dataset, { node, nowMs: nowMs() }))
    }),
  ]
}

function describeRows<Row>(rows: readonly Row[], describe: (row: Row) => object) {
  return { rows: rows.map(describe), isLast: rows.length < PAGE_ROWS }
}

/**
 * Refuses other machines unless the page is open to them. Without a token, any client that reaches the page may see it,
 * so the requested name must be this machine's, too: another site's name could have led a browser tab to it.
 */
function isRefused({ request, response }: RouteCall, { isEverywhere, hasTokens }: PageAccess): boolean {
  const { remoteAddress = '', localAddress } = request.socket
  const isFar = remoteAddress !== localAddress && !isLoopback(remoteAddress.replace(/^::ffff:/, ''))
  const problem =
    !isEverywhere && isFar
      ? 'The page of this agent is for its own machine only. Set agent.page: everywhere in dsc.yaml, or look through ssh -L 7070:localhost:7070.'
      : !hasTokens && !isOwnName(request.headers.host ?? '')
        ? 'The page of an agent without a token is at localhost only: open http://localhost:7070, or whatever agent.listen says.'
        : undefined
  if (problem === undefined) return false
  response.writeHead(403, { ...PAGE_DATA_HEADERS, 'content-type': 'text/plain; charset=utf-8' })
  response.end(`${problem}\n`)
  return true
}

function parseFilter(query: URLSearchParams): StatusFilter & { readonly copyId: string | undefined } {
  const [dataset, node, copyId] = ['dataset', 'node', 'copy'].map((name) => query.get(name) || undefined)
  return { dataset, node, copyId }
}

/** The last row of the previous answer, as received: `[dataset, node, createdAt, copyId]`. */
function parseAfterCopy(query: URLSearchParams) {
  const after = parseRow(query, 4)
  if (!after) return {}
  const [dataset, node, createdAt, copyId] = after as [string, string, string, string]
  return { after: { dataset, node, createdAtMs: parseTime(createdAt), copyId } }
}

/** Like `parseAfterCopy`: `[createdAt, leaseId]`. */
function parseAfterLease(query: URLSearchParams) {
  const after = parseRow(query, 2)
  if (!after) return {}
  return { after: { createdAtMs: parseTime(after[0]!), leaseId: after[1]! } }
}

function parseRow(query: URLSearchParams, length: number): readonly string[] | undefined {
  const raw = query.get('after')
  if (raw === null) return undefined
  const row = tryJson(raw)
  if (Array.isArray(row) && row.length === length && row.every((part) => typeof part === 'string')) return row
  throw new DscError('USAGE', `after: expected a list of ${length} texts`)
}

function parseTime(raw: string): number {
  const ms = Date.parse(raw)
  if (Number.isFinite(ms)) return ms
  throw new DscError('USAGE', `after: expected a time, found ${JSON.stringify(raw.slice(0, 50))}`)
}
