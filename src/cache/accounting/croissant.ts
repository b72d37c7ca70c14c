import type { Dataset } from '../../model/dataset.js'
import { formatCount } from '../../model/format-count.js'
import type { Receipt, UsedVersion } from '../../model/receipt.js'

/** The context of Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec.html), plus our own terms. */
const CONTEXT = {
  '@language': 'en',
  '@vocab': 'https://schema.org/',
  citeAs: 'cr:citeAs',
  column: 'cr:column',
  conformsTo: 'dct:conformsTo',
  cr: 'http://mlcommons.org/croissant/',
  rai: 'http://mlcommons.org/croissant/RAI/',
  data: { '@id': 'cr:data', '@type': '@json' },
  dataType: { '@id': 'cr:dataType', '@type': '@vocab' },
  dct: 'http://purl.org/dc/terms/',
  dsc: 'urn:dsc:receipt:',
  'dsc:definition': { '@type': '@json' },
  'dsc:stripe': { '@type': '@json' },
  examples: { '@id': 'cr:examples', '@type': '@json' },
  extract: 'cr:extract',
  field: 'cr:field',
  fileProperty: 'cr:fileProperty',
  fileObject: 'cr:fileObject',
  fileSet: 'cr:fileSet',
  format: 'cr:format',
  includes: 'cr:includes',
  isLiveDataset: 'cr:isLiveDataset',
  jsonPath: 'cr:jsonPath',
  key: 'cr:key',
  md5: 'cr:md5',
  parentField: 'cr:parentField',
  path: 'cr:path',
  recordSet: 'cr:recordSet',
  references: 'cr:references',
  regex: 'cr:regex',
  repeated: 'cr:repeated',
  replace: 'cr:replace',
  sc: 'https://schema.org/',
  separator: 'cr:separator',
  source: 'cr:source',
  subField: 'cr:subField',
  transform: 'cr:transform',
} as const

/** Format of a dataset's manifest, one line per object; its SHA-256 is the version. */
const MANIFEST_FORMAT = 'application/vnd.dsc.manifest'

/**
 * A receipt as a Croissant dataset: a FileObject for each version that the job used (`sha256` is the digest of its
 * manifest, `contentUrl` its source) and the set of files in it. Fields that only dsc needs, to fetch it again, stand
 * under `dsc:`.
 */
export function formatCroissant(receipt: Receipt, madeAtMs: number) {
  const { task, parties, used } = receipt
  const names = used.map(({ dataset }) => dataset)
  return {
    '@context': CONTEXT,
    '@type': 'sc:Dataset' as const,
    name: `data-of-${task.replaceAll(/[^A-Za-z0-9_-]/g, '-')}`,
    description: `What the job ${task} read: ${names.join(', ')}.`,
    conformsTo: 'http://mlcommons.org/croissant/1.0' as const,
    url: used[0]?.source?.source ?? `urn:dsc:job:${encodeURIComponent(task)}`,
    license: 'unknown',
    datePublished: formatTime(madeAtMs),
    version: '1.0.0',
    'dsc:task': task,
    'dsc:parties': parties,
    distribution: used.flatMap((version, index) => describeUsed(version, `used-${index + 1}`)),
  }
}

function describeUsed(used: UsedVersion, id: string) {
  const { dataset, version, source, files, contentBytes, stripe } = used
  const part = stripe ? `, stripe ${stripe.index + 1} of ${stripe.nodes.length}` : ''
  const object = {
    '@type': 'cr:FileObject',
    '@id': id,
    name: dataset,
    description: `${dataset}, ${formatCount(files, 'file')}, ${contentBytes} bytes${part}.`,
    contentUrl: source?.source ?? `urn:dsc:unknown:${dataset}`,
    contentSize: `${contentBytes} B`,
    encodingFormat: MANIFEST_FORMAT,
    sha256: version,
    'dsc:dataset': dataset,
    'dsc:files': files,
    'dsc:contentBytes': contentBytes,
    'dsc:definition': source,
    'dsc:stripe': stripe,
    'dsc:nodes': used.nodes,
    'dsc:firstUsedAt': formatTime(used.firstUsedAtMs),
    'dsc:lastUsedAt': formatTime(used.lastUsedAtMs),
  }
  return [object, describeFiles(id, source)]
}

function describeFiles(id: string, source: Dataset | null) {
  const { include = [], exclude = [] } = source ?? {}
  return {
    '@type': 'cr:FileSet',
    '@id': `${id}-files`,
    name: `${id}-files`,
    containedIn: { '@id': id },
    encodingFormat: 'application/octet-stream',
    includes: include.length === 0 ? '**' : include.length === 1 ? include[0] : include,
    ...(exclude.length > 0 && { excludes: exclude }),
  }
}

/**
 * Reads back the output of `formatCroissant`, from a file that anybody may have changed. Throws a RangeError that names
 * the missing part.
 */
export function parseCroissant(raw: unknown): Receipt {
  const document = raw as Readonly<Record<string, unknown>> | null
  const task = document?.['dsc:task']
  const distribution = document?.distribution
  if (typeof task !== 'string' || !Array.isArray(distribution))
    throw new RangeError('expected a receipt that `dsc receipt` wrote: "dsc:task" and "distribution"')
  const objects = distribution.filter((part) => part?.['@type'] === 'cr:FileObject')
  return { task, parties: [], used: objects.map(parseUsed) }
}

function parseUsed(raw: Readonly<Record<string, unknown>>): UsedVersion {
  const { name, sha256: version } = raw
  const source = (raw['dsc:definition'] ?? null) as Dataset | null
  if (typeof name !== 'string' || typeof version !== 'string' || !/^[0-9a-f]{64}$/.test(version))
    throw new RangeError(
      `expected a "name" and a "sha256" of 64 hexadecimal digits, found ${JSON.stringify({ name, version })}`,
    )
  if (source !== null && typeof source.source !== 'string')
    throw new RangeError(`${name}: expected "dsc:definition" with a source`)
  const known = source && { ...source, include: source.include ?? [], exclude: source.exclude ?? [] }
  const nodes = Array.isArray(raw['dsc:nodes']) ? raw['dsc:nodes'].map(String) : []
  const stripe = raw['dsc:stripe'] as UsedVersion['stripe']
  const [files, contentBytes] = [Number(raw['dsc:files'] ?? 0), Number(raw['dsc:contentBytes'] ?? 0)]
  const times = { firstUsedAtMs: 0, lastUsedAtMs: 0 }
  return { dataset: name, version, source: known, files, contentBytes, stripe, nodes, ...times }
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString()
}
