import type { Dataset } from '../../model/dataset.js'
import { findHubUrl, type HubUrl } from '../../model/source-url.js'
import type { AgentTokens } from '../server/authorize.js'
import type { GatewayCopies } from './gateway-copies.js'
import { findTokenHolder } from './gateway-keys.js'
import type { RequireReader } from './gateway-readers.js'
import { HubRefusal, type HubSnapshot } from './hub/answer-hub.js'
import type { AskedRepository } from './hub/parse-hub-request.js'
import type { Pins } from './located.js'
import { type Sent, sendObject } from './send-object.js'

const COMMIT = /^[0-9a-f]{40}$/

/** Everything that one connection reads through. */
interface HubClient {
  readonly copies: GatewayCopies
  readonly pins: Pins
  /** Returns a signal that aborts when the client or the gateway goes. */
  readonly untilGone: () => AbortSignal
  readonly onSent: (sent: Sent) => void
  readonly requireReader: RequireReader
}

/**
 * Finds the declared dataset that holds a repository at a revision: by its declared revision, or by the commit of its
 * copy. Rejects with a HubRefusal.
 */
export async function findRepository(
  datasets: readonly Dataset[],
  of: AskedRepository,
  client: HubClient,
): Promise<HubSnapshot> {
  const candidates = datasets
    .flatMap((dataset) => {
      const url = findHubUrl(dataset.source)
      return url && url.kind === of.kind && url.repository === of.repository ? [{ dataset, url }] : []
    })
    .toSorted((a, b) => breadth(a) - breadth(b))
  if (candidates.length === 0)
    throw new HubRefusal(
      404,
      'RepoNotFound',
      `${of.repository} is no dataset that dsc.yaml declares or the record knows: dsc dataset add <name> hf://${of.kind === 'models' ? '' : 'datasets/'}${of.repository}`,
    )
  for (const candidate of candidates) {
    if (candidate.url.revision !== of.revision && !COMMIT.test(of.revision)) continue
    client.requireReader(candidate.dataset)
    const snapshot = await openSnapshot(candidate, client)
    if (candidate.url.revision === of.revision || snapshot.commit === of.revision) return snapshot
  }
  const known = candidates.map(({ url }) => url.revision).join(', ')
  throw new HubRefusal(
    404,
    'RevisionNotFound',
    `of ${of.repository} this gateway has ${known}, not ${of.revision}`,
  )
}

/** Sort key that puts a whole repository before a part of it. */
function breadth({ dataset, url }: { readonly dataset: Dataset; readonly url: HubUrl }): number {
  return url.folder.length + dataset.include.length + dataset.exclude.length
}

async function openSnapshot(
  { dataset, url }: { readonly dataset: Dataset; readonly url: HubUrl },
  { copies, pins, untilGone, onSent }: HubClient,
): Promise<HubSnapshot> {
  const look: HubSnapshot['look'] = async (read) => {
    const found = await copies.untilFound([dataset], async () => {
      const located = await copies.locate(dataset, pins)
      return copies.use(located, async () => copies.look(located, (manifest) => ({ value: read(manifest) })))
    })
    return found.value
  }
  const first = await look((manifest) => manifest.entries('all').next().value)
  return {
    commit: first?.versionId ?? '',
    folder: url.folder,
    look,
    send: async (key, exchange) => {
      const asked = { dataset, key, versionId: undefined }
      onSent(await sendObject(copies, asked, { ...exchange, pins, untilGone }))
    },
  }
}

/** Throws unless `HF_TOKEN` is one of the agents' tokens, or a gateway key written as `id:secret`. */
export function requireHubToken(header: string | undefined, tokens: AgentTokens | undefined): void {
  if (findTokenHolder(header, tokens)) return
  throw new HubRefusal(
    401,
    '',
    'this gateway answers users of its own machine, and those whose HF_TOKEN is a key of `dsc gateway key`, as id:secret',
  )
}
