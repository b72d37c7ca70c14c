import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** The name in a certificate that all agents of a cluster share: where nodes come and go, nobody knows their addresses. */
const AGENT_NAME = 'dsc-agent'

/**
 * Checks that a certificate of a trusted authority is an agent's: it names the host, or all agents. Returns the fault,
 * as Node's own check does, or undefined if the certificate is good.
 */
export function checkAgentIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const fault = checkServerIdentity(host, certificate)
  return fault && checkServerIdentity(AGENT_NAME, certificate) ? fault : undefined
}

/** Why an agent at `url` gets no token from a node that trusts agents by the authority `ca`; undefined: it may. */
export function findPlainness(url: string, ca: string | undefined): string | undefined {
  return ca !== undefined && url.startsWith('http:')
    ? 'its agent does not encrypt: agent.tls.caFile here expects https'
    : undefined
}
