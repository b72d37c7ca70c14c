import { statSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cache } from '../../cache/cache.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import { findOwner } from '../../model/dataset.js'
import { answerCancel, answerPrepare, answerReserve } from '../calls/prepare-route.js'
import type { ArrivingObjects } from '../copies/arriving-objects.js'
import type { LocalCopies } from '../copies/local-copies.js'
import { sendCopyFile } from '../copies/send-copy-file.js'
import { serveObject } from '../copies/serve-object.js'
import { serveObjects } from '../copies/serve-objects.js'
import { serveRemoteFile, serveRemoteIndex } from '../copies/serve-remote.js'
import type { Metrics } from '../metrics/metrics.js'
import { type PageAccess, pageRoutes } from '../page/page-routes.js'
import type { StatusPage } from '../page/status-page.js'
import { answerKeptSamples } from '../samples/kept-samples.js'
import type { SampleServers } from '../samples/sample-servers.js'
import { answerSampleTable, answerServeSamples } from '../samples/serve-samples.js'
import type { Route, RouteCall } from '../server/agent-server.js'

/** Everything that the agent's routes need to answer requests. */
interface Served {
  readonly cache: Cache
  readonly copies: LocalCopies
  readonly arriving: ArrivingObjects
  readonly metrics: Metrics
  readonly samples: SampleServers
  /** Folder for the kept lists of samples; undefined: the agent keeps none. */
  readonly tables: string | undefined
  readonly page: StatusPage
  readonly pageAccess: PageAccess
  readonly refreshMetrics: () => Promise<void>
  /** Whether other nodes can find this agent: the record accepted its last report. */
  readonly isReported: () => boolean
  readonly stopping: AbortSignal
  readonly note: (sentence: string) => void
}

const READ = ['GET', 'HEAD']
/** How long a metrics request waits for the record, in ms; after that, the metrics keep their old values. */
const METRICS_PATIENCE_MS = 800

/** Every route of an agent. Nothing in a path or query ever becomes part of a path on disk. */
export function createRoutes(served: Served): readonly Route[] {
  return [
    ...stateRoutes(served),
    ...copyRoutes(served),
    ...sampleRoutes(served),
    ...prepareRoutes(served),
    ...pageRoutes(served.page, served.cache, served.pageAccess),
  ]
}

function stateRoutes({ cache, metrics, refreshMetrics, isReported }: Served): readonly Route[] {
  return [
    {
      name: 'healthz',
      methods: READ,
      path: /^\/healthz$/,
      isOpen: true,
      answer: async ({ response }) => answerState(response, 200, { status: 'ok', node: cache.node }),
    },
    {
      name: 'readyz',
      methods: READ,
      path: /^\/readyz$/,
      isOpen: true,
      answer: async ({ response }) =>
        isReported()
          ? answerState(response, 200, { status: 'ok', node: cache.node })
          : answerState(response, 503, { status: 'the record does not answer', node: cache.node }),
    },
    {
      name: 'metrics',
      methods: READ,
      path: /^\/metrics$/,
      isForUsers: true,
      answer: async ({ response }) => {
        await Promise.race([refreshMetrics(), sleep(METRICS_PATIENCE_MS, undefined, { ref: false })])
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(metrics.format())
      },
    },
  ]
}

function answerState(response: ServerResponse, code: number, state: object): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(`${JSON.stringify(state)}\n`)
}

function copyRoutes(served: Served): readonly Route[] {
  return [
    {
      name: 'object',
      methods: READ,
      path: /^\/v1\/datasets\/([^/]+)\/object$/,
      answer: (call) => serveObject(served, call),
    },
    {
      name: 'objects',
      methods: ['GET'],
      path: /^\/v1\/datasets\/([^/]+)\/objects$/,
      answer: (call) => serveObjects(served, call),
    },
    {
      name: 'remote-index',
      methods: READ,
      path: /^\/v1\/datasets\/([^/]+)\/$/,
      answer: (call) => serveRemoteIndex(served.copies, call),
    },
    {
      name: 'remote-file',
      methods: READ,
      path: /^\/v1\/datasets\/([^/]+)\/files\/(.+)$/,
      answer: (call) => serveRemoteFile(served, call),
    },
    {
      name: 'manifest',
      methods: READ,
      path: /^\/v1\/copies\/([0-9a-zA-Z-]{1,64})\/manifest$/,
      answer: (call) => serveManifest(served.cache, call),
    },
  ]
}

function sampleRoutes(served: Served): readonly Route[] {
  return [
    {
      name: 'sample-table',
      methods: ['GET'],
      path: /^\/v1\/copies\/([0-9a-zA-Z-]{1,64})\/samples$/,
      isForPass: true,
      answer: (call) => answerSampleTable(served, call),
    },
    {
      name: 'kept-samples',
      methods: ['GET'],
      path: /^\/v1\/samples\/([0-9a-f]{64})$/,
      answer: (call) => answerKeptSamples(served, call),
    },
    {
      name: 'serve-samples',
      methods: ['POST'],
      path: /^\/v1\/copies\/([0-9a-zA-Z-]{1,64})\/samples\/serve$/,
      isForPass: true,
      answer: (call) => answerServeSamples(served, call),
    },
  ]
}

function prepareRoutes({ cache, stopping, note }: Served): readonly Route[] {
  return [
    {
      name: 'prepare',
      methods: ['POST'],
      path: /^\/v2\/prepare$/,
      answer: ({ request, response }) => answerPrepare({ cache, request, response, stopping, note }),
    },
    {
      name: 'reserve',
      methods: ['POST'],
      path: /^\/v1\/reserve$/,
      answer: ({ request, response }) => answerReserve({ cache, request, response, stopping, note }),
    },
    {
      name: 'cancel',
      methods: ['POST'],
      path: /^\/v1\/cancel$/,
      answer: ({ request, response }) => answerCancel({ cache, request, response, stopping, note }),
    },
  ]
}

async function serveManifest(cache: Cache, { response, parameters }: RouteCall): Promise<void> {
  const filter = { copyId: parameters[0]!, node: cache.node, states: ['ready'] } as const
  const [copy] = await cache.record.listCopies(filter, cache.nowMs())
  if (!copy || findOwner(copy.dataset) !== undefined) {
    response.writeHead(404).end()
    return
  }
  const path = manifestPath(copy.directory)
  const length = statSync(path).size
  await sendCopyFile({ root: cache.root, copy, path, range: { offset: 0, length } }, response, () => {
    response.writeHead(200, { 'content-length': length, 'content-type': 'application/vnd.sqlite3' })
  })
}
