import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { filesDirectory } from '../../cache/cache-layout.js'
import { Manifest } from '../../manifest/manifest.js'
import type { Copy } from '../../model/copy.js'
import { findHubUrl, type HubUrl } from '../../model/source-url.js'
import { sendCopyFile } from '../copies/send-copy-file.js'
import { isLocalUser } from '../server/local-users.js'
import { answerHub, type HubExchange, HubRefusal, type HubSnapshot, refuseHub } from './hub/answer-hub.js'
import { type AskedRepository, parseHubRequest } from './hub/parse-hub-request.js'
import { planObjectAnswer } from './plan-object-answer.js'
import { toHubRefusal } from './to-s3-error.js'

interface Repository extends HubSnapshot {
  readonly url: HubUrl
  close(): void
}

/**
 * A hub on loopback that serves the repositories of some ready copies and nothing else, for libraries that ask a hub
 * even for files they have. Answers only processes of this user.
 */
export class LocalHub {
  readonly #repositories: readonly Repository[]
  readonly #server = createServer((request, response) => {
    void this.#answer({ request, response })
  })

  private constructor(repositories: readonly Repository[]) {
    this.#repositories = repositories
  }

  /** Starts listening. The caller must hold the copies until `close`. */
  static async open(root: string, copies: readonly Copy[]): Promise<LocalHub> {
    const hub = new LocalHub(copies.flatMap((copy) => openRepository(root, copy)))
    await once(hub.#server.listen(0, '127.0.0.1').unref(), 'listening')
    return hub
  }

  /** The value that clients set as HF_ENDPOINT. */
  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
    for (const repository of this.#repositories) repository.close()
  }

  async #answer(exchange: HubExchange): Promise<void> {
    const { request, response } = exchange
    try {
      if (!(await isLocalUser(request.socket, new Set([process.getuid!()]))))
        throw new HubRefusal(403, '', 'this hub answers the user who ran dsc run')
      const operation = parseHubRequest(request.url ?? '')
      if (operation === undefined)
        throw new HubRefusal(404, '', 'dsc run answers questions about repositories')
      await answerHub(operation, async (of) => this.#find(of), exchange)
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy()
      else refuseHub(exchange, toHubRefusal(error, exchange))
    }
  }

  #find(of: AskedRepository): Repository {
    const own = this.#repositories.filter(
      ({ url }) => url.kind === of.kind && url.repository === of.repository,
    )
    const found = own.find(({ url, commit }) => url.revision === of.revision || commit === of.revision)
    if (found) return found
    const name = `hf://${of.kind === 'models' ? '' : 'datasets/'}${of.repository}`
    if (own.length === 0)
      throw new HubRefusal(404, 'RepoNotFound', `dsc run was not given ${name}: add it before the --`)
    throw new HubRefusal(404, 'RevisionNotFound', `dsc run was given another revision of ${name}`)
  }
}

function openRepository(root: string, copy: Copy): readonly Repository[] {
  const url = copy.source === null ? undefined : findHubUrl(copy.source.source)
  if (url === undefined) return []
  const manifest = Manifest.openPublished(copy.directory)
  const first = manifest.entries('present').next().value
  return [
    {
      url,
      commit: first?.versionId ?? '',
      folder: url.folder,
      look: async (look) => look(manifest),
      send: (key, exchange) => sendFile({ root, copy, manifest }, key, exchange),
      close: () => manifest.close(),
    },
  ]
}

async function sendFile(
  { root, copy, manifest }: { readonly root: string; readonly copy: Copy; readonly manifest: Manifest },
  key: string,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const entry = manifest.find(key)
  if (entry?.state !== 'present')
    throw new HubRefusal(404, 'EntryNotFound', `there is no ${key} in this copy`)
  const answer = planObjectAnswer(request.headers, entry)
  response.setHeader('etag', `"${entry.etag}"`)
  response.setHeader('accept-ranges', 'bytes')
  if (answer.status === 304) {
    response.writeHead(304).end()
    return
  }
  const { offset, length } = answer
  const range = { 'content-range': `bytes ${offset}-${offset + length - 1}/${entry.sizeBytes}` }
  const headers = { 'content-length': length, ...(answer.status === 206 ? range : {}) }
  if (request.method === 'HEAD') {
    response.writeHead(answer.status, headers).end()
    return
  }
  const path = `${filesDirectory(copy.directory)}/${entry.path}`
  await sendCopyFile({ root, copy, path, range: answer }, response, () => {
    response.writeHead(answer.status, headers)
  })
}
