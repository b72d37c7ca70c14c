import { readFile } from 'node:fs/promises'
import type { Surroundings } from '../cache/surroundings.js'
import { DscError } from '../failure/dsc-error.js'
import type { StorageTls } from '../feed/storage/open-socket.js'

/** The certificate that a storage node presents to feeds: the same that this node's agent presents to others. */
export async function readOwnCertificate(context: Surroundings): Promise<{ cert: string; key: string }> {
  const { tls } = (await context.config()).agent
  if (!tls)
    throw new DscError('CONFIG_INVALID', '--tls needs a certificate, but dsc.yaml has no agent.tls', {
      hint: 'agent: { tls: { certFile: node.pem, keyFile: node.key } } in dsc.yaml',
    })
  return { cert: await readPem(tls.certFile), key: await readPem(tls.keyFile) }
}

/** The authority by which a feed trusts storage nodes: the one by which agents trust each other, or the system's. */
export async function readStorageTls(context: Surroundings): Promise<StorageTls> {
  const { tls } = (await context.config()).agent
  return { ca: tls?.caFile === undefined ? undefined : await readPem(tls.caFile) }
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new DscError('CONFIG_INVALID', `agent.tls: cannot read ${path}`, { cause })
  }
}
