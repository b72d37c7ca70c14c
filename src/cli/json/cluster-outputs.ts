import { z } from 'zod'
import { bytes, count, failure, origin, time, version } from './output-objects.js'

const origins = z.strictObject({
  store: bytes,
  peers: z.record(z.string(), bytes),
  failed: z.record(z.string(), z.string()).optional(),
})
const unprepared = z.strictObject({ node: z.string(), error: failure })
const prepared = z.strictObject({
  node: z.string(),
  version: version.nullable(),
  path: z.string(),
  files: count,
  bytes,
  origin,
  lease: z.strictObject({ id: z.string() }),
  origins: origins.nullable(),
})
const stripes = z.array(
  z.union([
    z.strictObject({ index: count, ...prepared.shape }),
    z.strictObject({ index: count, ...unprepared.shape }),
  ]),
)
const forgotten = z.array(z.strictObject({ dataset: z.string(), version: version.nullable() }))
const systemd = z.strictObject({ text: z.string() })

/** What commands print that concern agents, several nodes, or the record as a whole. */
export const CLUSTER_OUTPUTS = {
  agent: z.strictObject({ node: z.string(), url: z.string(), gateway: z.string().nullable() }),
  'agent --print-systemd': systemd,
  'agent link': z.strictObject({ url: z.string(), expiresAt: time.nullable() }),
  'gateway key': z.strictObject({ accessKeyId: z.string(), secretAccessKey: z.string() }),
  'prepare --nodes': z.strictObject({
    dataset: z.string(),
    nodes: z.array(z.union([prepared, unprepared])),
  }),
  'prepare --stripe': z.strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    path: z.string().nullable(),
    files: count,
    bytes,
    stripes,
  }),
  'prepare --remote': z.strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    path: z.null(),
    url: z.string(),
    origin: z.literal('peer'),
    files: count,
    bytes,
    lease: z.strictObject({
      id: z.string(),
      task: z.string(),
      holder: z.enum(['process', 'slurm', 'pod', 'ttl']),
      expiresAt: time.nullable(),
    }),
  }),
  'prepare --prolog': z.strictObject({ dataset: z.string(), path: z.null(), error: failure }).meta({
    description: 'where staging failed; else as prepare',
  }),
  repair: z.strictObject({
    dataset: z.string(),
    version,
    nodes: z.array(z.string()),
    missing: z.array(z.strictObject({ index: count, from: z.string(), node: z.string() })),
    complete: z.boolean(),
    stripes,
  }),
  'record migrate': z.strictObject({
    from: z.string(),
    to: z.string(),
    rows: z.record(z.string(), count),
  }),
  'record forget-node': z.strictObject({ node: z.string(), copies: forgotten }),
  'record forget-node --dry-run': z.strictObject({
    node: z.string(),
    copies: forgotten,
    dryRun: z.literal(true),
  }),
  'record claim-node': z.strictObject({
    node: z.string(),
    cacheRoot: z.string(),
    cacheId: z.string(),
    renamedFrom: z.string().nullable(),
  }),
} as const
