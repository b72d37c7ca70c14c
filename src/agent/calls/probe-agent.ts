import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { askAgentOnce } from '../../http/ask-agent-once.js'
import { NoAnswer } from '../../http/ask-once.js'
import { NODE_HEADER } from '../../sources/peer-wire.js'
import { describeExpiry } from '../server/certificate-expiry.js'
import type { AgentAccess } from './agent-client.js'

const PROBE_MS = 3000

/** Why this node cannot use an agent, or soon will be unable to; undefined: it can. */
interface AgentHindrance {
  readonly reason: string
  readonly hint: string
  /** The problem lies ahead: the agent still works today. */
  readonly isAhead?: true
}

/** Sends an agent a request that needs the token, as a download would. */
export async function probeAgent(
  { node, url }: { readonly node: string; readonly url: string },
  access: AgentAccess,
  signal: AbortSignal,
): Promise<AgentHindrance | undefined> {
  try {
    const answer = await askAgentOnce(`${url}/v1/datasets/doctor/`, {
      ...access,
      connectTimeoutMs: PROBE_MS,
      silenceMs: PROBE_MS,
      signal,
    })
    const expiry = readExpiry(answer.socket)
    answer.destroy()
    if (answer.statusCode === 401) {
      return {
        reason: 'it does not accept the token',
        hint: 'agent.tokenFile: a token of both machines must be the same',
      }
    }
    const named = answer.headers[NODE_HEADER.toLowerCase()]
    if (named === node) {
      if (expiry === undefined) return undefined
      return {
        reason: expiry,
        hint: `renew agent.tls.certFile on ${node}, then start its agent anew`,
        isAhead: true,
      }
    }
    return {
      reason: named === undefined ? 'it is no agent of this version of dsc' : `node ${named} answers there`,
      hint: 'the same version of dsc on all nodes; agent.advertise is the URL that others reach the agent at',
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return {
      reason: code === undefined || error instanceof NoAnswer ? message : `${message} (${code})`,
      hint: hintFor(code ?? '', message),
    }
  }
}

/** A warning if the certificate that the agent presented expires soon; undefined without TLS. */
function readExpiry(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  return describeExpiry(Date.parse(socket.getPeerCertificate().valid_to), Date.now())
}

function hintFor(code: string, message: string): string {
  if (/CERT|SELF_SIGNED|ISSUER|TLS|SSL|EPROTO/.test(code) || /certificate/.test(message)) {
    return 'agent.tls.caFile here must hold the authority of its certificate, which must be valid and name its host'
  }
  return 'is dsc agent running there, and can this machine reach it?'
}
