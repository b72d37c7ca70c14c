import { formatHostPort, type HostPort } from '../../model/host-port.js'

/** What an agent is reached at: what `agent.advertise` says, or by where it listens. */
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
