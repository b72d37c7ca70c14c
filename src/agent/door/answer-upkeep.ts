import { isAbsolute } from 'node:path'
import { createOwnUpkeep, type ReadProgress, type VerifyRequest } from '../../cache/api/upkeep-api.js'
import { type Verified, verifyDataset } from '../../cache/upkeep/verify-dataset.js'
import { type NamedVersion, type VerifiedVersion, verifyReceipt } from '../../cache/upkeep/verify-receipt.js'
import { parseDatasetName } from '../../model/dataset.js'
import { findHubUrl, parseSourceUrl } from '../../model/source-url.js'
import { expected, fields, flag, list, text, texts, whole } from '../calls/fields.js'
import { datasetFields, findReadable, hideVictims, judgeAsked } from './answer-staging.js'
import { type DoorCall, findShown, operation, requireReader, requireRight } from './door-call.js'
import { nameAsker } from './identify-asker.js'

const ABSOLUTE = expected('an absolute path')
const HUB_URL = expected('hf://…')
const folder = text.refine(isAbsolute, ABSOLUTE)
const isHubUrl = (url: string) => findHubUrl(url) !== undefined
const adoption = { right: { kind: 'upkeep', of: 'adopt folders' } } as const

/** The operations that keep the cache in order. Who may read a dataset may verify it; the rest is for admins. */
export const UPKEEP_OPERATIONS = {
  verify: operation(fields({ names: texts, isRepair: flag.default(false) }), { takes: 'upkeep' }, verify),
  verifyReceipt: operation(
    fields({
      used: list(
        fields({
          dataset: text,
          version: text,
          source: datasetFields.nullable(),
          stripe: fields({ index: whole, nodes: texts }).optional(),
        }),
      ),
    }),
    { takes: 'upkeep' },
    (call, { used }) => verifyUsed(call, used),
  ),
  cleanUp: operation(
    fields({
      isDryRun: flag.default(false),
      isResumed: flag.default(false),
      abandonedAfterMs: whole.min(0, expected('0 ms or more')).optional(),
    }),
    { right: { kind: 'upkeep', of: 'clean up the cache' }, takes: 'upkeep' },
    (call, request) => createOwnUpkeep(call.cache).cleanUp({ ...request, by: nameAsker(call.asker) }, call),
  ),
  adopt: operation(
    fields({
      folder,
      name: text,
      source: fields({ source: text, endpoint: text.optional(), pathStyle: flag.optional() }).optional(),
    }),
    { ...adoption, takes: 'upkeep' },
    (call, request) => {
      parseDatasetName(request.name)
      if (request.source) parseSourceUrl(request.source.source)
      return createOwnUpkeep(call.cache).adopt(request, call)
    },
  ),
  takeRepository: operation(
    fields({
      dataset: datasetFields,
      pinnedSource: text.refine(isHubUrl, HUB_URL),
      directory: folder,
    }),
    { ...adoption, takes: 'stagings' },
    async (call, asked) => {
      const known = await findReadable(call, asked.dataset.name)
      const { dataset } = judgeAsked(call, asked.dataset, { known, own: undefined })
      const ways = { signal: call.signal, onProgress: hideVictims(call) }
      return createOwnUpkeep(call.cache).takeRepository({ ...asked, dataset }, ways)
    },
  ),
}

/** Reads copies of datasets that the asker may read, of all of them if none is named; an admin can repair them. */
async function verify(call: DoorCall, { names, isRepair }: VerifyRequest): Promise<Verified> {
  const { cache } = call.service
  if (isRepair) requireRight(call, { kind: 'upkeep', of: 'repair copies' })
  for (const name of names) await requireReader(call, name)
  const ready = await cache.record.listCopies({ node: cache.node, states: ['ready'] }, cache.nowMs())
  const isShown = await findShown(call, new Set(ready.map(({ dataset }) => dataset)))
  return verifyDataset(cache, names, {
    isRepair,
    accept: ({ dataset }) => isShown(dataset),
    signal: call.signal,
    onProgress: tellReading(call),
  })
}

/** Looks for the versions of a receipt, whose sources are those of its file: each is listed if its asker may stage it. */
async function verifyUsed(
  call: DoorCall,
  used: readonly NamedVersion[],
): Promise<readonly VerifiedVersion[]> {
  for (const { dataset } of used) await requireReader(call, dataset)
  return verifyReceipt(call.cache, used, {
    judgeSource: async (named) => {
      const known = await findReadable(call, named.name)
      return judgeAsked(call, named, { known, own: undefined }).dataset
    },
    signal: call.signal,
    onProgress: tellReading(call),
  })
}

function tellReading(call: DoorCall) {
  const tell = (progress: ReadProgress) => call.onProgress(progress)
  return (dataset: string, files: number, bytes: number) => tell({ step: 'verifying', dataset, files, bytes })
}
