import { readFile } from 'node:fs/promises'
import { readAgentAccess } from '../../agent/calls/agent-access.js'
import { probeAgent } from '../../agent/calls/probe-agent.js'
import { describeExpiry, readExpiryMs } from '../../agent/server/certificate-expiry.js'
import type { Config } from '../../config/config.js'
import { isDscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import { agentUrls } from '../../model/node.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { type Check, failed, ok, warning } from './check.js'

/** Contacts every reporting agent, as a download from it would: an unusable agent means reading from the source. */
export async function checkAgents(
  config: Config,
  open: () => Promise<Pick<RecordStore, 'listNodes' | 'nowMs'>>,
  signal: AbortSignal,
): Promise<Check[]> {
  try {
    const record = await open()
    const agents = [...agentUrls(await record.listNodes(), record.nowMs())]
    if (agents.length === 0) return []
    const access = await readAgentAccess(config)
    const found = await Promise.all(
      agents.map(async ([node, url]) => {
        const hindrance = await probeAgent({ node, url }, access, signal)
        return hindrance && { node, url, hindrance }
      }),
    )
    const hindered = found.filter((entry) => entry !== undefined)
    const usable = agents.length - hindered.filter(({ hindrance }) => !hindrance.isAhead).length
    return [
      ...hindered.map(({ node, url, hindrance }) =>
        warning(`agent of ${node}`, `${url}: ${hindrance.reason}`, hindrance.hint),
      ),
      ...(usable > 0 ? [ok('agents', `${formatCount(usable, 'agent')} can be used`)] : []),
    ]
  } catch (error) {
    if (isDscError(error, 'RECORD_UNAVAILABLE', 'RECORD_NEWER')) return [] // the record has its own check
    if (!isDscError(error)) throw error
    return [failed('agents', error.message, error.hint)]
  }
}

/** Checks the certificate that this node's agent would present; nothing without `agent.tls`. */
export async function checkCertificate({ agent }: Config): Promise<Check[]> {
  if (agent.tls === undefined) return []
  const { certFile } = agent.tls
  try {
    const expiresAtMs = readExpiryMs(await readFile(certFile, 'utf8'))
    const said = describeExpiry(expiresAtMs, Date.now())
    if (said === undefined)
      return [ok('certificate', `${certFile}, until ${new Date(expiresAtMs).toISOString()}`)]
    return [warning('certificate', `${certFile}: ${said}`, 'renew it, then restart dsc agent')]
  } catch (error) {
    return [failed('certificate', `${certFile}: ${(error as Error).message}`, 'check agent.tls in dsc.yaml')]
  }
}
