import { isIP } from 'node:net'
import { parseHostName } from '../../model/host-name.js'
import { S3Error } from './s3-request.js'

/** The meaning of a request's Host header. */
export type NamedHost =
  /** The gateway itself: the path starts with the bucket. */
  | { readonly kind: 'gateway' }
  /** `bucket.<name of the gateway>`: the path is the key. */
  | { readonly kind: 'bucket'; readonly bucket: string }
  | { readonly kind: 'foreign'; readonly name: string }

/**
 * The names under which clients reach the gateway. Requests for any other name are refused. Otherwise, a web page whose
 * own name resolves to this machine (DNS rebinding) could read everything that a local user can, and
 * `bucket.s3.example` would be taken for the gateway, its key for a bucket.
 */
export class GatewayNames {
  /** Lower case, longest first, so that `a.b` is not read as a bucket `a` of the name `b`. */
  readonly #names: readonly string[]
  /** Schemes of the names that were given as URLs. */
  readonly #schemes: ReadonlyMap<string, 'http' | 'https'>

  /** `given`: host names, or URLs that show how clients talk to a proxy in front (`https://data.example`). */
  constructor(given: readonly string[]) {
    const parsed = given.map(parseHostName)
    const names = new Set(['localhost', ...parsed.map(({ name }) => name)])
    this.#names = [...names].sort((a, b) => b.length - a.length)
    this.#schemes = new Map(parsed.flatMap(({ name, scheme }) => (scheme ? [[name, scheme]] : [])))
  }

  /** Reads a Host header, which HTTP/1.0 clients may omit. IP addresses always mean the gateway. */
  read(host: string | undefined): NamedHost {
    const { name } = parseHostName(host ?? '')
    if (name === '' || isIP(name) !== 0 || this.#names.includes(name)) return { kind: 'gateway' }
    const own = this.#names.find((known) => name.endsWith(`.${known}`))
    if (own === undefined) return { kind: 'foreign', name }
    return { kind: 'bucket', bucket: name.slice(0, -own.length - 1) }
  }

  /** The scheme of clients that use this Host, if the configuration names it. */
  schemeOf(host: string | undefined): 'http' | 'https' | undefined {
    return this.#schemes.get(parseHostName(host ?? '').name)
  }
}

/**
 * The bucket in a host name; undefined: the path names it. Host names have no capitals, but some old buckets do. Throws
 * an S3Error if the name is not the gateway's.
 */
export function findHostBucket(named: NamedHost, buckets: Iterable<string>): string | undefined {
  switch (named.kind) {
    case 'gateway':
      return undefined
    case 'bucket':
      return [...buckets].find((bucket) => bucket.toLowerCase() === named.bucket) ?? named.bucket
    case 'foreign':
      throw new S3Error(
        'AccessDenied',
        `this gateway does not answer to the name ${JSON.stringify(named.name)}: agent.gateway.names of dsc.yaml lists its names`,
      )
  }
}
