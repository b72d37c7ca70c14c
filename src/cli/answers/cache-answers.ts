import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, seconds, time, version } from '../../answers/fields.js'
import { leasesAnswer } from '../../cache/leases/lease-answer.js'
import { definition } from '../../cache/names/dataset-answer.js'
import {
  preparedAnswer,
  preparedSeveralAnswer,
  preparePlanAnswer,
} from '../../cache/prepare/prepared-answer.js'
import { explanationAnswer, failedAnswer } from '../../cache/status/explanation-answer.js'
import { copy, historyAnswer, lock, statusAnswer } from '../../cache/status/status-answer.js'
import { verifiedAnswer } from '../../cache/upkeep/verified-answer.js'
import { errorAnswer } from '../../failure/failure-answer.js'

/** A file that a command writes for another program. */
export const textAnswer = answer({ text: z.string() })
/** A JSON Schema. */
export const schemaAnswer = answer({ schema: z.record(z.string(), z.unknown()) })

const initAnswer = answer({
  path: z.string(),
  isDryRun: z.boolean(),
  settings: z.strictObject({
    node: z.string().optional(),
    record: z.string().optional(),
    cacheRoot: z.string(),
    maxDatasets: count.optional(),
    maxPercent: z.number().optional(),
    minFreeBytes: byteCount.optional(),
    lowWaterPercent: z.number().optional(),
  }),
  text: z.string(),
})
const setupAnswer = answer({
  isDryRun: z.boolean(),
  config: z.string(),
  cacheRoot: z.string(),
  steps: list(
    z.strictObject({
      kind: z.enum(['user', 'folder', 'file', 'start', 'restart']),
      path: z.string().nullable(),
    }),
  ),
  supervisor: z.string().nullable(),
  looks: list(z.strictObject({ user: z.string(), command: z.string(), output: z.string() })),
})
const adoptAnswer = answer({ copies: list(copy) })
const adoptPlanAnswer = answer({
  isDryRun: z.literal(true),
  folders: list(
    z.union([
      z.strictObject({ folder: z.string(), dataset: z.string() }),
      z.strictObject({ folder: z.string(), source: z.string(), commit: z.string() }),
    ]),
  ),
})
const releaseAnswer = answer({ released: count, task: z.string(), dataset: z.string().nullable() })
const releaseLeaseAnswer = answer({ released: count, leaseId: z.string() })
const datasetAnswer = answer(definition.shape)
const datasetsAnswer = answer({
  datasets: list(z.strictObject({ ...definition.shape, declaredIn: z.enum(['dsc.yaml', 'record']) })),
})
const datasetCopiesAnswer = answer({ ...definition.shape, copies: list(copy) })
const datasetRemovalAnswer = answer({ dataset: z.string(), isDryRun: z.boolean() })
const locksAnswer = answer({
  copies: list(
    z.strictObject({
      dataset: z.string(),
      version: version.nullable(),
      node: z.string(),
      isLocked: z.boolean(),
      lock: lock.nullable(),
    }),
  ),
})
const evictionAnswer = answer({
  isDryRun: z.boolean(),
  freedBytes: byteCount,
  keptCopies: count.meta({ description: 'in the trash, for `dsc undo`' }),
  victims: list(
    z.strictObject({
      dataset: z.string(),
      version: version.nullable(),
      diskBytes: byteCount,
      lastTask: z.string().nullable(),
      lastUsedAt: time,
      reason: z.string(),
    }),
  ),
})
const deed = z.strictObject({
  id: count,
  kind: z.enum(['evict', 'cleanup', 'unlock', 'release']),
  by: z.string(),
  at: time,
  items: list(
    z.strictObject({
      dataset: z.string(),
      node: z.string(),
      task: z.string().nullable(),
      diskBytes: byteCount.nullable(),
    }),
  ),
})
const undoAnswer = answer({
  deed,
  undone: list(z.strictObject({ dataset: z.string(), node: z.string() })),
  refused: list(z.strictObject({ dataset: z.string(), reason: z.string() })),
})
const deedsAnswer = answer({ deeds: list(deed) })
const cleanUpAction = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('expire-lease'),
    reason: z.string(),
    task: z.string(),
    leaseId: z.string(),
  }),
  z.strictObject({
    kind: z.enum(['finish-eviction', 'forget-copy', 'evict']),
    reason: z.string(),
    dataset: z.string(),
    version: version.nullable(),
    diskBytes: byteCount,
  }),
  z.strictObject({
    kind: z.enum(['empty-trash', 'remove-directory', 'adopt-directory', 'leave']),
    reason: z.string(),
    path: z.string(),
  }),
])
const cleanUpAnswer = answer({ isDryRun: z.boolean(), actions: list(cleanUpAction) })
const hintAnswer = answer({
  datasets: list(z.string()),
  nodes: list(
    z.strictObject({
      node: z.string(),
      ready: list(z.string()),
      staging: list(z.string()),
      readyShare: z.number().meta({ description: 'in datasets' }),
      stagingShare: z.number(),
    }),
  ),
  prefer: z.string().optional(),
  affinity: z.string().optional(),
  shares: list(
    z.strictObject({
      node: z.string(),
      party: z.string().nullable(),
      guaranteedBytes: byteCount,
      usedBytes: byteCount,
      leftBytes: byteCount,
    }),
  ),
})
const shell = z.enum(['bash', 'zsh', 'fish'])
const completionAnswer = answer({ shell, script: z.string() })
const completionInstallAnswer = answer({ shell, path: z.string() })
const namesAnswer = answer({ names: list(z.string()) })
const configAnswer = answer({
  file: z.string().nullable(),
  settings: list(
    z.strictObject({
      key: z.string(),
      value: z.unknown(),
      setBy: z.discriminatedUnion('kind', [
        z.strictObject({ kind: z.literal('file'), path: z.string(), line: count }),
        z.strictObject({ kind: z.literal('environment'), variable: z.string() }),
        z.strictObject({ kind: z.literal('flag'), flag: z.string() }),
        z.strictObject({ kind: z.literal('default') }),
      ]),
    }),
  ),
})
const doctorAnswer = answer({
  checks: list(
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
})
const exitCodesAnswer = answer({
  exitCodes: list(
    z.strictObject({ exitCode: count, code: z.string(), meaning: z.string(), isRetryable: z.boolean() }),
  ),
  meanings: list(z.strictObject({ exitCode: count, meaning: z.string() })),
})
const part = z.enum(['disk', 'record', 'store'])
const benchAnswer = answer({
  node: z.string(),
  dataset: z.string().nullable(),
  elapsedSeconds: seconds,
  figures: list(
    z.strictObject({
      part,
      what: z.string(),
      value: z.number().nonnegative(),
      unit: z.enum(['bytesPerSecond', 'filesPerSecond', 'ms']),
      needed: z.number().positive(),
      isEnough: z.boolean(),
    }),
  ),
  skipped: list(z.strictObject({ part, reason: z.string() })),
  slowest: z.strictObject({ part, what: z.string() }).nullable(),
})
const selfAnswer = answer({
  version: z.string(),
  program: z.string(),
  folder: z.string(),
  nodejs: z.string(),
  sqlite: z.string(),
  recordSchema: count,
  platform: z.string(),
})
const selfUpdateAnswer = answer({
  executable: z.string(),
  oldVersion: z.string().nullable(),
  newVersion: z.string().nullable(),
  state: z.enum(['replaced', 'current', 'would replace']),
})

/** The answers of commands about datasets and this node's cache, by the command's words. */
export const CACHE_ANSWERS = {
  error: errorAnswer,
  prepare: preparedAnswer,
  'prepare <dataset> <dataset>': preparedSeveralAnswer,
  'prepare --plan': preparePlanAnswer,
  init: initAnswer,
  setup: setupAnswer,
  adopt: adoptAnswer,
  'adopt --dry-run': adoptPlanAnswer,
  release: releaseAnswer,
  'release --lease': releaseLeaseAnswer,
  'dataset add': datasetAnswer,
  'dataset ls': datasetsAnswer,
  'dataset show': datasetCopiesAnswer,
  'dataset rm': datasetRemovalAnswer,
  lock: locksAnswer,
  unlock: locksAnswer,
  evict: evictionAnswer,
  undo: undoAnswer,
  'undo --list': deedsAnswer,
  cleanup: cleanUpAnswer,
  'cleanup --print-systemd': textAnswer,
  'cleanup --print-cron': textAnswer,
  verify: verifiedAnswer,
  hint: hintAnswer,
  completion: completionAnswer,
  'completion install': completionInstallAnswer,
  'completion --list': namesAnswer,
  config: configAnswer,
  'config --schema': schemaAnswer,
  doctor: doctorAnswer,
  'doctor --exit-codes': exitCodesAnswer,
  bench: benchAnswer,
  self: selfAnswer,
  'self --schemas': schemaAnswer,
  'self update': selfUpdateAnswer,
  status: statusAnswer,
  leases: leasesAnswer,
  history: historyAnswer,
  why: explanationAnswer,
  'why <id>': failedAnswer,
} as const
