import { z } from 'zod'
import { answer } from '../../answers/answer.js'
import { byteCount, count, list, time, version } from '../../answers/fields.js'
import { prepared, preparedElsewhereAnswer } from '../../cache/prepare/prepared-answer.js'
import { failure } from '../../failure/failure-answer.js'

const notPrepared = z.strictObject({ node: z.string(), error: failure })
const nodeOutcome = z.union([prepared, notPrepared])
const stripeOutcome = z.union([
  z.strictObject({ index: count, ...prepared.shape }),
  z.strictObject({ index: count, ...notPrepared.shape }),
])
const preparedNodes = answer({ dataset: z.string(), nodes: list(nodeOutcome) })
const preparedStripes = answer({
  dataset: z.string(),
  version: version.nullable(),
  node: z.string(),
  path: z.string().nullable(),
  files: count,
  contentBytes: byteCount,
  stripes: list(stripeOutcome),
})
const notPreparedAnswer = answer({ dataset: z.string(), path: z.null(), error: failure }).meta({
  description: 'where staging failed; else as prepare',
})
const repairAnswer = answer({
  dataset: z.string(),
  version,
  nodes: list(z.string()),
  missing: list(z.strictObject({ index: count, from: z.string(), node: z.string() })),
  isComplete: z.boolean(),
  stripes: list(stripeOutcome),
})
const agentAnswer = answer({
  node: z.string(),
  url: z.string(),
  gateway: z.string().nullable(),
  csi: z.string().nullable(),
})
const linkAnswer = answer({ url: z.string(), expiresAt: time.nullable() })
const gatewayKeyAnswer = answer({ accessKeyId: z.string(), secretAccessKey: z.string() })
const migrateAnswer = answer({ from: z.string(), to: z.string(), rows: z.record(z.string(), count) })
const forgetNodeAnswer = answer({
  node: z.string(),
  copies: list(z.strictObject({ dataset: z.string(), version: version.nullable() })),
  isDryRun: z.boolean(),
})
const claimNodeAnswer = answer({
  node: z.string(),
  cacheRoot: z.string(),
  cacheId: z.string(),
  renamedFrom: z.string().nullable(),
})

/** The answers of commands about agents, several nodes, or the record as a whole, by the command's words. */
export const CLUSTER_ANSWERS = {
  agent: agentAnswer,
  'agent link': linkAnswer,
  'gateway key': gatewayKeyAnswer,
  'prepare --nodes': preparedNodes,
  'prepare --stripe': preparedStripes,
  'prepare --remote': preparedElsewhereAnswer,
  'prepare --prolog': notPreparedAnswer,
  repair: repairAnswer,
  'record migrate': migrateAnswer,
  'record forget-node': forgetNodeAnswer,
  'record forget-node --dry-run': forgetNodeAnswer,
  'record claim-node': claimNodeAnswer,
} as const

export type NodeOutcomeAnswer = z.infer<typeof nodeOutcome>
export type StripeOutcomeAnswer = z.infer<typeof stripeOutcome>
