import { formatHostPort, type HostPort } from '../../model/host-port.js'

/** The URL of an agent: `agent.advertise` if set, else derived from its listening address. */
export function agentUrl(options: {
  readonly listen: HostPort
  readonly advertise: string | undefined
  readonly hostName: string
  readonly tls: object | undefined
}): string {
  const { listen, advertise, hostName, tls } = options
  const isEverywhere = listen.host === '0.0.0.0' || listen.host === '::'
  const reached = { host: isEverywhere ? hostName : listen.host, port: listen.port }
  return advertise ?? `${tls ? 'https' : 'http'}://${formatHostPort(reached)}`
}
