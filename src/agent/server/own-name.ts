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
 * Whether an agent without a token may answer a request; its clients may then do everything. Local browsers reach the
 * agent, too: any page in them could resolve its own name to this machine, or post here from its own site.
 */
export function isOwnRequest(
  { host = '', origin }: IncomingHttpHeaders,
  /** `host:port` that others use; undefined: only the address itself. */
  reachedAs: string | undefined,
): boolean {
  const isNamed = isOwnName(host) || host === reachedAs
  return isNamed && (origin === undefined || URL.parse(origin)?.host === host)
}
