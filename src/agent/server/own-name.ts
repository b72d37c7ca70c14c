import type { IncomingHttpHeaders } from 'node:http'
import { isLoopback, parseHostPort } from '../../model/host-port.js'

/** Whether a request was sent to a name of this machine. */
export function isOwnName(host: string): boolean {
  try {
    return isLoopback(parseHostPort(host, 80).host)
  } catch {
    return false
  }
}

/**
 * Whether a request may be answered where there is no token and whoever reaches the agent may do all. A browser here
 * reaches it, too, and any page in it could be led here by a name of its own, or post here from its own site.
 */
export function isOwnRequest(
  { host = '', origin }: IncomingHttpHeaders,
  /** `host:port` that others are told; undefined: none but the address itself. */
  reachedAs: string | undefined,
): boolean {
  const isNamed = isOwnName(host) || host === reachedAs
  return isNamed && (origin === undefined || URL.parse(origin)?.host === host)
}
