import { BlockList, isIP } from 'node:net'
import { DscError } from '../failure/dsc-error.js'

/** A proxy for requests. Plain data, so that it can be sent to a worker. */
export interface HttpProxy {
  readonly hostname: string
  readonly port: number
  /** Whether the connection to the proxy itself is encrypted. */
  readonly isTls: boolean
  /** Value of `proxy-authorization`; undefined: the proxy requires none. */
  readonly authorization: string | undefined
  /** For messages, without user and password. */
  readonly url: string
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy for requests to `origin`, as curl and the AWS CLI determine it: HTTPS_PROXY or HTTP_PROXY by the scheme of
 * the origin, ALL_PROXY for both, none for hosts in NO_PROXY; lower-case names take precedence. Undefined: none. Throws
 * CONFIG_INVALID if it is unusable.
 */
export function findProxy(origin: string, environment: Environment): HttpProxy | undefined {
  const { protocol, hostname, port } = new URL(origin)
  const scheme = protocol.slice(0, -1)
  const [name, raw] = readFirst(environment, `${scheme}_proxy`) ?? readFirst(environment, 'all_proxy') ?? []
  if (name === undefined || raw === undefined) return undefined
  const target = {
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || (scheme === 'https' ? '443' : '80'),
  }
  if (isExcluded(target, readFirst(environment, 'no_proxy')?.[1] ?? '')) return undefined
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(raw) ? raw : `http://${raw}`)
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '')
    throw new DscError('CONFIG_INVALID', `${name} is not the URL of a proxy that dsc can use`, {
      hint: `expected ${name}=http://host:port; NO_PROXY lists the hosts that are reached without it`,
    })
  const isTls = url.protocol === 'https:'
  const number = Number(url.port) || (isTls ? 443 : 80)
  const user = [url.username, url.password].map(decodeURIComponent).join(':')
  return {
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: number,
    isTls,
    authorization: url.username === '' ? undefined : `Basic ${Buffer.from(user).toString('base64')}`,
    url: `${url.protocol}//${url.hostname}:${number}`,
  }
}

function readFirst(environment: Environment, name: string): readonly [string, string] | undefined {
  for (const each of [name, name.toUpperCase()]) {
    const value = environment[each]?.trim()
    if (value) return [each, value]
  }
  return undefined
}

function isExcluded(target: { readonly hostname: string; readonly port: string }, list: string): boolean {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((entry) => matches(target, entry))
}

/**
 * Matches `*`, a host with its subdomains (`example.com`, `.example.com`, `*.example.com`), an address or a network;
 * with or without port.
 */
function matches(
  { hostname, port }: { readonly hostname: string; readonly port: string },
  entry: string,
): boolean {
  if (entry === '*') return true
  const network = /^\[?([0-9a-f.:]+)\]?\/(\d+)$/.exec(entry)
  if (network) return isInNetwork(hostname, network[1]!, Number(network[2]))
  const [, host = entry, only] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(isIP(entry) ? `[${entry}]` : entry) ?? []
  if (only !== undefined && only !== port) return false
  const name = host.replace(/^\*?\./, '')
  return hostname === name || (isIP(hostname) === 0 && hostname.endsWith(`.${name}`))
}

function isInNetwork(address: string, network: string, bits: number): boolean {
  const family = isIP(network)
  if (family === 0 || isIP(address) !== family || bits > (family === 6 ? 128 : 32)) return false
  const type = family === 6 ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(network, bits, type)
  return list.check(address, type)
}
