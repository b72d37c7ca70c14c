import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/config.js'
import { readTokens } from '../server/authorize.js'
import type { AgentAccess } from './agent-client.js'

/** Reads the credentials that this node shows to other agents and the authority by which it trusts them. */
export async function readAgentAccess(config: Config): Promise<AgentAccess> {
  const { tokenFile, tls } = config.agent
  return {
    token: tokenFile === undefined ? undefined : (await readTokens(tokenFile)).own,
    ca: tls?.caFile === undefined ? undefined : await readFile(tls.caFile, 'utf8'),
  }
}
