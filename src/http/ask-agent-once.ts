import type { IncomingMessage } from 'node:http'
import { checkAgentIdentity, findPlainness } from '../platform/agent-certificate.js'
import { askOnce, type Question } from './ask-once.js'

/** Sends a request to the agent of a node. Rejects, and shows it no token, if it does not encrypt and `ca` demands it. */
export async function askAgentOnce(url: string, question: Question): Promise<IncomingMessage> {
  const plainness = findPlainness(url, question.ca)
  if (plainness !== undefined) throw new Error(plainness)
  return askOnce(url, { ...question, checkServerIdentity: checkAgentIdentity })
}
