import type { Cache } from '../../cache/cache.js'
import { filesDirectory } from '../../cache/cache-layout.js'
import { publishedDirectoryOf } from '../../cache/eviction/finish-evictions.js'
import { sampleRuleOf } from '../../cache/open-copy-file.js'
import { DscError } from '../../failure/dsc-error.js'
import { readBody } from '../../frames/body.js'
import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'
import { findOwner } from '../../model/dataset.js'
import { FORMAT_NAMES, type FormatName, type ToldDialect } from '../../model/sample-formats.js'
import { parseDialect } from '../../model/told-dialect.js'
import { RECOGNITIONS } from '../../samples/formats/formats.js'
import { type FolderFile, planSampleFiles } from '../../samples/plan/sample-files.js'
import { openSampleTable } from '../../samples/sample-table.js'
import { matchWanted, parseWanted } from '../../samples/wanted-files.js'
import type { RouteCall } from '../server/agent-server.js'
import type { SampleFilter, SampleServers } from './sample-servers.js'

/** Maximum size of a table of samples, in bytes; a sample takes about 60. */
const MAX_TABLE_BYTES = 2 ** 30

interface Serving {
  readonly cache: Cache
  readonly samples: SampleServers
}

/**
 * Answers `GET /v1/copies/<id>/samples?split=…&only=…&as=…&dialect=…`: the table of the copy's samples. 202: they are being
 * listed, ask again; 204: it has none.
 */
export async function answerSampleTable(
  { cache, samples }: Serving,
  { parameters, query, response }: RouteCall,
): Promise<void> {
  const copy = await findReady(cache, parameters[0]!)
  const only = query.get('only')
  const filter = {
    split: readSplit(query),
    only: only === null ? undefined : parseWanted(only),
    format: readFormat(query),
    dialect: readDialect(query),
  }
  const answer = samples.index(copy.path, filter)
  if (answer === 'indexing') {
    response.writeHead(202, { 'retry-after': '1' }).end()
    return
  }
  const table = await answer
  requireAll(copy, table, filter)
  if (table === null) response.writeHead(204).end()
  else {
    const body = Buffer.from(table) // a private copy: sockets do not take shared memory
    response
      .writeHead(200, { 'content-length': body.length, 'content-type': 'application/octet-stream' })
      .end(body)
  }
}

/**
 * Answers `POST /v1/copies/<id>/samples/serve`, whose body is the table of all nodes, with `{"port": …}`: where this
 * node serves its samples.
 */
export async function answerServeSamples(
  { cache, samples }: Serving,
  { parameters, query, request, response, pass }: RouteCall,
): Promise<void> {
  const copy = await findReady(cache, parameters[0]!)
  const { copyId, path } = copy
  const served = { copyId, path, split: readSplit(query), rule: sampleRuleOf(cache.root, copy) }
  const readTable = () => readBody(request, MAX_TABLE_BYTES)
  const port = await samples.serve(served, readTable, pass?.by)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ port }))
}

/** Throws COPY_DAMAGED if files of the copy are missing from the table: the order of samples would silently change. */
function requireAll(copy: Copy, table: Uint8Array | null, filter: SampleFilter): void {
  const { split, only, format } = filter
  const isWanted = only && matchWanted(only)
  const prefix = split === undefined ? '' : `${split.replace(/\/+$/, '')}/`
  using manifest = Manifest.openPublished(copy.directory)
  const files: FolderFile[] = []
  for (const { key, sizeBytes } of manifest.entries('present')) {
    if (!key.startsWith(prefix)) continue
    const path = key.slice(prefix.length)
    if (!isWanted || isWanted(path)) files.push({ path, size: sizeBytes })
  }
  const expected = planSampleFiles(files, { formats: RECOGNITIONS, format, folder: copy.path }).files.length
  const found = table === null ? 0 : openSampleTable(table).fileCount
  if (found === expected) return
  throw new DscError(
    'COPY_DAMAGED',
    `${copy.path} on node ${copy.node} has ${found} files with samples, expected ${expected}`,
    { hint: `dsc verify ${copy.dataset} --repair` },
  )
}

/** The requested format of the copy's files, which overrides their appearance. */
function readFormat(query: URLSearchParams): FormatName | undefined {
  const name = query.get('as')
  const format = FORMAT_NAMES.find((each) => each === name)
  if (name === null || format !== undefined) return format
  throw new DscError('USAGE', `expected one of ${FORMAT_NAMES.join(', ')}, found ${JSON.stringify(name)}`)
}

/** How the copy's CSV is written, as far as the user says. */
function readDialect(query: URLSearchParams): ToldDialect | undefined {
  const told = query.get('dialect')
  try {
    return told === null ? undefined : parseDialect(told)
  } catch (error) {
    throw new DscError('USAGE', (error as Error).message, { cause: error })
  }
}

/** A folder of the dataset; it cannot lead out of the copy. */
function readSplit(query: URLSearchParams): string | undefined {
  const split = query.get('split') ?? undefined
  if (split === undefined) return undefined
  const isInside = !split.startsWith('/') && !split.includes('\0') && !split.split('/').includes('..')
  if (!isInside)
    throw new DscError('USAGE', `expected a folder of the dataset, found ${JSON.stringify(split)}`)
  return split
}

async function findReady(cache: Cache, copyId: string): Promise<Copy> {
  const [copy] = await cache.record.listCopies({ copyId, node: cache.node, states: ['ready'] }, cache.nowMs())
  if (copy === undefined || findOwner(copy.dataset) !== undefined)
    throw new DscError('COPY_NOT_FOUND', `node ${cache.node} has no ready copy ${copyId}`)
  // Anybody who can write to the record can write any path there.
  const isOwn = copy.path === filesDirectory(publishedDirectoryOf(cache, copy) ?? '')
  if (!isOwn && copy.origin !== 'local')
    throw new DscError('CACHE_ROOT_INVALID', `${copy.path} is not where this cache has ${copy.dataset}`, {
      hint: `dsc verify ${copy.dataset}`,
    })
  return copy
}
