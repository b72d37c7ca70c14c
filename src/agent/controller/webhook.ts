import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { readBody } from '../../frames/body.js'

/** The API server sends one pod, and etcd takes at most 1.5 MiB. */
const MAX_BODY_BYTES = 4 * 1024 * 1024

interface WebhookMeans {
  /** Where `tls.crt` and `tls.key` are, or will be. */
  readonly folder: string
  /** TCP port; 0: any free one. */
  readonly port: number
  readonly review: (raw: unknown) => Promise<object>
  readonly note: (sentence: string) => void
}

/** Answers `POST /pods` of the API server by `review`, over TLS. */
export class Webhook {
  readonly #means: WebhookMeans
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  /** The certificate and key that it serves with. */
  #served: string | undefined
  #told: string | undefined

  constructor(means: WebhookMeans) {
    this.#means = means
  }

  /** The port where it listens; undefined: it has no certificate yet. */
  get port(): number | undefined {
    return (this.#server.address() as { readonly port: number } | null)?.port
  }

  /**
   * Takes the certificate as it is now, and listens from the first one on. Call it again and again: a certificate is
   * renewed, and a read in the middle of that finds a key that does not fit, or no file.
   */
  async renew(): Promise<void> {
    const { folder, port, note } = this.#means
    try {
      const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(folder, name), 'utf8'))
      if (this.#served === cert! + key!) return
      if (!new X509Certificate(cert!).checkPrivateKey(createPrivateKey(key!)))
        throw new Error('tls.key is not the key of tls.crt')
      this.#server.setSecureContext({ cert: cert!, key: key! })
      this.#served = cert! + key!
      this.#told = undefined
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (this.#served === undefined && code === 'ENOENT') return // a cluster without the webhook
      const until = this.#served === undefined ? 'cannot start' : 'keeps its old certificate'
      if (this.#told !== message) note(`webhook: ${until}: ${message}`)
      this.#told = message
      return
    }
    if (this.#server.listening) return
    this.#server.listen(port)
    await once(this.#server, 'listening')
  }

  /** Ends it with all its connections. */
  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { review, note } = this.#means
    try {
      if (request.method !== 'POST' || request.url?.split('?')[0] !== '/pods')
        return void response.writeHead(404).end()
      const raw: unknown = JSON.parse((await readBody(request, MAX_BODY_BYTES)).toString('utf8'))
      const text = JSON.stringify(await review(raw))
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    } catch (error) {
      note(`webhook: ${(error as Error).message}`)
      response.writeHead(500).end() // failurePolicy: Ignore admits the pod as it is
    }
  }
}
