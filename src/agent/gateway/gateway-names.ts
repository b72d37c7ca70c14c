import { isIP } from 'node:net'
import { parseHostName } from '../../model/host-name.js'
import { S3Error } from './s3-request.js'

/** What the Host header of a request means. */
export type NamedHost =
  /** The gateway itself: the path begins with the bucket. */
  | { readonly kind: 'gateway' }
  /** `bucket.<name of the gateway>`: the path is the key. */
  | { readonly kind: 'bucket'; readonly bucket: string }
  | { readonly kind: 'foreign'; readonly name: string }

/**
 * The names under which clients reach the gateway. A request for any other name is refused: a web page whose own name
 * leads to this machine (DNS rebinding) could read everything that a local user may, and `bucket.s3.example` would be
 * taken for the gateway, its key for a bucket.
 */
export class GatewayNames {
  /** Lower case, the longest first, so that `a.b` is not read as a bucket `a` of the name `b`. */
  readonly #names: readonly string[]
  /** Of those that are given as URLs. */
  readonly #schemes: ReadonlyMap<string, 'http' | 'https'>

  /** `given`: host names, or URLs that say how clients speak with a proxy in front (`https://data.example`). */
  constructor(given: readonly string[]) {
    const parsed = given.map(parseHostName)
    const names = new Set(['localhost', ...parsed.map(({ name }) => name)])
    this.#names = [...names].sort((a, b) => b.length - a.length)
    this.#schemes = new Map(parsed.flatMap(({ name, scheme }) => (scheme ? [[name, scheme]] : [])))
  }

  /** Reads a Host header; clients of HTTP/1.0 need not send one. Addresses are always the gateway's. */
  read(host: string | undefined): NamedHost {
    const { name } = parseHostName(host ?? '')
    if (name === '' || isIP(name) !== 0 || this.#names.includes(name)) return { kind: 'gateway' }
    const own = this.#names.find((known) => name.endsWith(`.${known}`))
    if (own === undefined) return { kind: 'foreign', name }
    return { kind: 'bucket', bucket: name.slice(0, -own.length - 1) }
  }

  /** How clients that ask for this Host speak, where the configuration says so. */
  schemeOf(host: string | undefined): 'http' | 'https' | undefined {
    return this.#schemes.get(parseHostName(host ?? '').name)
  }
}

/**
 * The bucket that a host name brings; undefined: the path brings it. Host names have no capitals, some old buckets do.
 * Throws an S3Error for a name that is not the gateway's.
 */
export function findHostBucket(named: NamedHost, buckets: Iterable<string>): string | undefined {
  switch (named.kind) {
    case 'gateway':
      return undefined
    case 'bucket':
      return [...buckets].find((bucket) => bucket.toLowerCase() === named.bucket) ?? named.bucket
    case 'foreign':
      throw new S3Error(
        { code: 'AccessDenied', status: 403 },
        `this gateway does not answer to the name ${JSON.stringify(named.name)}: agent.gateway.names of dsc.yaml lists its names`,
      )
  }
}
