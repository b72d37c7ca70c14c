import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Cache } from '../stage/cache.js'
import { manifestPath } from '../stage/manifest-db.js'
import type { Route } from './agent-server.js'
import type { ArrivingObjects } from './arriving-objects.js'
import type { LocalCopies } from './local-copies.js'
import type { Metrics } from './metrics.js'
import { answerCancel, answerPrepare, answerReserve } from './prepare-route.js'
import type { SampleServers } from './sample-servers.js'
import { serveObject } from './serve-object.js'
import { serveRemoteFile, serveRemoteIndex } from './serve-remote.js'
import { answerSampleTable, answerServeSamples } from './serve-samples.js'

/** Everything that an agent answers. Nothing in a path or query ever becomes part of a path on disk. */
export function createRoutes(served: {
  readonly cache: Cache
  readonly copies: LocalCopies
  readonly arriving: ArrivingObjects
  readonly metrics: Metrics
  readonly samples: SampleServers
  readonly refreshMetrics: () => Promise<void>
  /** Whether other nodes can find this agent: it has reported itself to the record. */
  readonly isKnown: () => boolean
  readonly stopping: AbortSignal
}): readonly Route[] {
  const { cache, copies, metrics } = served
  const read = ['GET', 'HEAD']
  return [
    {
      name: 'healthz',
      methods: read,
      path: /^\/healthz$/,
      isOpen: true,
      answer: async ({ response }) => {
        // The record is asked, so that an agent that cannot do its work does not look healthy.
        await cache.record.listNodes()
        const [code, status] = served.isKnown() ? [200, 'ok'] : [503, 'starting']
        const body = JSON.stringify({ status, node: cache.node })
        response.writeHead(code, { 'content-type': 'application/json' }).end(`${body}\n`)
      },
    },
    {
      name: 'metrics',
      methods: read,
      path: /^\/metrics$/,
      answer: async ({ response }) => {
        await served.refreshMetrics()
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(metrics.format())
      },
    },
    {
      name: 'object',
      methods: read,
      path: /^\/v1\/datasets\/([^/]+)\/object$/,
      answer: ({ request, response, parameters, query }) =>
        serveObject(served, parameters[0]!, query, request, response),
    },
    {
      name: 'remote-index',
      methods: read,
      path: /^\/v1\/datasets\/([^/]+)\/$/,
      answer: ({ response, parameters }) => serveRemoteIndex(copies, parameters[0]!, response),
    },
    {
      name: 'remote-file',
      methods: read,
      path: /^\/v1\/datasets\/([^/]+)\/files\/(.+)$/,
      answer: ({ request, response, parameters }) =>
        serveRemoteFile(copies, metrics, parameters[0]!, parameters[1]!, request, response),
    },
    {
      name: 'manifest',
      methods: read,
      path: /^\/v1\/copies\/([0-9a-zA-Z-]{1,64})\/manifest$/,
      answer: async ({ response, parameters }) => {
        const [copy] = await cache.record.listCopies(
          { copyId: parameters[0]!, node: cache.node, states: ['ready'] },
          cache.nowMs(),
        )
        if (!copy) {
          response.writeHead(404).end()
          return
        }
        const path = manifestPath(copy.directory)
        const { size } = await stat(path)
        response.writeHead(200, { 'content-length': size, 'content-type': 'application/vnd.sqlite3' })
        await pipeline(createReadStream(path), response)
      },
    },
    {
      name: 'sample-table',
      methods: ['GET'],
      path: /^\/v1\/copies\/([0-9a-zA-Z-]{1,64})\/samples$/,
      answer: ({ response, parameters, query }) =>
        answerSampleTable(cache, served.samples, parameters[0]!, query, response),
    },
    {
      name: 'serve-samples',
      methods: ['POST'],
      path: /^\/v1\/copies\/([0-9a-zA-Z-]{1,64})\/samples\/serve$/,
      answer: ({ request, response, parameters, query }) =>
        answerServeSamples(cache, served.samples, parameters[0]!, query, request, response),
    },
    {
      name: 'prepare',
      methods: ['POST'],
      path: /^\/v1\/prepare$/,
      answer: ({ request, response }) =>
        answerPrepare({ cache, request, response, stopping: served.stopping }),
    },
    {
      name: 'reserve',
      methods: ['POST'],
      path: /^\/v1\/reserve$/,
      answer: ({ request, response }) =>
        answerReserve({ cache, request, response, stopping: served.stopping }),
    },
    {
      name: 'cancel',
      methods: ['POST'],
      path: /^\/v1\/cancel$/,
      answer: ({ request, response }) =>
        answerCancel({ cache, request, response, stopping: served.stopping }),
    },
  ]
}
