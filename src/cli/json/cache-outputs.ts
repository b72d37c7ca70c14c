import { z } from 'zod'
import {
  bytes,
  copy,
  count,
  dataset,
  event,
  failure,
  layout,
  lease,
  lock,
  node,
  open,
  origin,
  state,
  time,
  transfer,
  version,
  wait,
} from './output-objects.js'

const held = z.strictObject({ ...lease.shape, staleReason: z.string().nullable() }).meta({ id: 'leaseHeld' })
const lockable = z.array(
  z.strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    locked: z.boolean(),
    lock: lock.nullable(),
  }),
)
const named = z.strictObject({ ...dataset.shape, declaredIn: z.enum(['dsc.yaml', 'record']) })
const part = z.enum(['disk', 'record', 'store'])
const self = z.strictObject({
  version: z.string(),
  program: z.string(),
  folder: z.string(),
  node: z.string(),
  sqlite: z.string(),
  recordSchema: count,
  platform: z.string(),
})

/** What commands about datasets and this node's cache print with `--json`; json.test.ts compares it with real output. */
export const CACHE_OUTPUTS = {
  error: z.strictObject({ error: z.strictObject({ ...failure.shape, exitCode: count }) }),
  prepare: z.strictObject({
    dataset: z.string(),
    version: version.nullable(),
    node: z.string(),
    path: z.string(),
    origin: origin,
    files: count,
    bytes,
    lease: z.strictObject({
      id: z.string(),
      task: z.string(),
      holder: z.enum(['process', 'slurm', 'pod', 'ttl']),
      expiresAt: time.nullable(),
    }),
    downloaded: z
      .strictObject({
        fetchedBytes: bytes,
        fetchedFiles: count,
        reusedBytes: bytes,
        reusedFiles: count,
        retries: count,
        verifiedBy: z.record(z.string(), count),
        origins: open.optional(),
      })
      .optional(),
  }),
  'prepare --plan': z.strictObject({
    dataset: z.string(),
    node: z.string(),
    outcome: z.enum(['ready', 'wait', 'fits', 'evicts', 'refused']),
    version: version.nullable(),
    path: z.string().nullable(),
    files: count,
    bytes,
    diskBytes: bytes,
    evictions: z.array(
      z.strictObject({ dataset: z.string(), version: version.nullable(), bytes, reason: z.string() }),
    ),
    shortfalls: z.array(open),
    evictableBytes: bytes,
    held: z.array(z.string()),
  }),
  init: z.strictObject({
    path: z.string(),
    isWritten: z.boolean(),
    settings: z.strictObject({
      cacheRoot: z.string(),
      maxDatasets: count.optional(),
      maxPercent: z.number().optional(),
      minFreeBytes: bytes.optional(),
      lowWaterPercent: z.number().optional(),
      record: z.string().optional(),
      node: z.string().optional(),
    }),
    text: z.string(),
  }),
  adopt: z.array(copy),
  'adopt --dry-run': z.strictObject({
    dryRun: z.literal(true),
    folders: z.array(
      z.union([
        z.strictObject({ folder: z.string(), name: z.string() }),
        z.strictObject({ folder: z.string(), source: z.string(), commit: z.string() }),
      ]),
    ),
  }),
  release: z.strictObject({ released: count, task: z.string(), dataset: z.string().nullable() }),
  'dataset add': dataset,
  'dataset ls': z.array(named),
  'dataset show': z.strictObject({ ...dataset.shape, copies: z.array(copy) }),
  'dataset rm': z.strictObject({ dataset: z.string(), removed: z.boolean() }),
  lock: lockable,
  unlock: lockable,
  evict: z.strictObject({
    freedBytes: bytes,
    victims: z.array(
      z.strictObject({
        dataset: z.string(),
        version: version.nullable(),
        bytes,
        lastTask: z.string().nullable(),
        lastUsedAt: time,
        reason: z.string(),
      }),
    ),
    evicted: z.boolean(),
  }),
  cleanup: z.strictObject({
    dryRun: z.boolean(),
    actions: z.array(z.looseObject({ kind: z.string(), reason: z.string() })),
  }),
  verify: z.array(
    z.strictObject({
      dataset: z.string(),
      version: version.nullable(),
      path: z.string(),
      checkedFiles: count,
      checkedBytes: bytes,
      damages: z.array(open),
      repaired: open.nullable(),
      failure: failure.nullable(),
    }),
  ),
  hint: z.strictObject({
    datasets: z.array(z.string()),
    nodes: z.array(
      z.strictObject({
        node: z.string(),
        ready: z.array(z.string()),
        staging: z.array(z.string()),
        readyShare: z.number(),
        stagingShare: z.number(),
      }),
    ),
    prefer: z.string().optional(),
    shares: z.array(
      z.strictObject({
        node: z.string(),
        party: z.string().nullable(),
        guaranteedBytes: bytes,
        usedBytes: bytes,
        leftBytes: bytes,
      }),
    ),
  }),
  'release --lease': z.strictObject({ released: count, lease: z.string() }),
  'cleanup --print-systemd': z.strictObject({ text: z.string() }),
  completion: z.strictObject({ shell: z.enum(['bash', 'zsh', 'fish']), script: z.string() }),
  'completion --list': z.array(z.string()),
  config: z.strictObject({
    file: z.string().nullable(),
    settings: z.array(z.strictObject({ key: z.string(), value: z.unknown(), origin: open })),
  }),
  doctor: z.strictObject({
    checks: z.array(
      z.strictObject({
        name: z.string(),
        status: z.enum(['ok', 'warning', 'failed', 'skipped']),
        detail: z.string(),
        hint: z.string().optional(),
      }),
    ),
    first: z
      .strictObject({ check: z.string(), status: z.enum(['failed', 'warning']), remedy: z.string() })
      .nullable(),
  }),
  bench: z.strictObject({
    node: z.string(),
    dataset: z.string().nullable(),
    seconds: z.number().nonnegative(),
    figures: z.array(
      z.strictObject({
        part,
        what: z.string(),
        value: z.number().nonnegative(),
        unit: z.enum(['bytesPerSecond', 'filesPerSecond', 'ms']),
        needed: z.number().positive(),
        isEnough: z.boolean(),
      }),
    ),
    skipped: z.array(z.strictObject({ part, reason: z.string() })),
    slowest: z.strictObject({ part, what: z.string() }).nullable(),
  }),
  'doctor --exit-codes': z.array(
    z.strictObject({ exitCode: count, code: z.string(), meaning: z.string(), isRetryable: z.boolean() }),
  ),
  self,
  status: z.strictObject({
    takenAt: time,
    record: z.string(),
    nodes: z.array(node),
    copies: z.array(copy),
    layouts: z.array(layout),
    leases: z.array(lease),
    transfers: z.array(transfer),
    waits: z.array(wait),
    holdings: z.array(
      z.strictObject({
        dataset: z.string(),
        nodes: z.array(
          z.strictObject({
            node: z.string(),
            state,
            fillRatio: z.number().min(0).max(1),
            referenceCount: count,
          }),
        ),
      }),
    ),
    events: z.array(event),
  }),
  leases: z.array(held),
  history: z.array(event),
  why: z.strictObject({
    dataset: z.string(),
    copies: z.array(
      z.strictObject({
        ...copy.shape,
        hereBecause: event.nullable(),
        keptBy: z.array(z.string()),
        leases: z.array(lease),
        evictionRank: z.strictObject({ rank: count, candidates: count, reason: z.string() }).nullable(),
      }),
    ),
    layouts: z.array(layout),
    lastEvicted: event.nullable(),
    lastRefused: event.nullable(),
    lastFailed: event.nullable(),
    nextVictims: z.array(
      z.strictObject({
        copyId: z.string(),
        dataset: z.string(),
        node: z.string(),
        bytes,
        lastUsedAt: time,
        reason: z.string(),
      }),
    ),
  }),
  'why <id>': z.strictObject({ id: z.string(), failure: event }),
} as const

/** One line of `--ndjson`, by command. */
export const CACHE_OUTPUT_LINES = {
  status: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('node'), ...node.shape }),
    z.strictObject({ type: z.literal('copy'), ...copy.shape }),
    z.strictObject({ type: z.literal('layout'), ...layout.shape }),
    z.strictObject({ type: z.literal('lease'), ...lease.shape }),
    z.strictObject({ type: z.literal('transfer'), ...transfer.shape }),
    z.strictObject({ type: z.literal('wait'), ...wait.shape }),
    z.strictObject({ type: z.literal('event'), ...event.shape }),
  ]),
  leases: held,
  history: event,
} as const
