import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { makeCertificate } from '../../testing/certificate.js'
import { makeTestFolder, sampleBytes } from '../../testing/sample-folder.js'
import { lengthOf, makeFolder, readAll, relay, serve } from '../../testing/storage-node.js'
import { nodeSupply } from './node-supply.js'

/** Reads a self-signed certificate for 127.0.0.1. */
function readCertificate(context: TestContext): { cert: string; key: string } {
  const { certFile, keyFile } = makeCertificate(makeTestFolder(context))
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
}

test('a feed reads from storage nodes with TLS, of which nothing can be read on the way', async (context) => {
  const folder = await makeFolder(context)
  const tls = readCertificate(context)
  const node = await serve(context, folder, { tls, token: 'secret' })
  const seen: Buffer[] = []
  const between = await relay(context, node, (chunk) => {
    seen.push(Buffer.from(chunk))
    return chunk
  })
  await readAll(context, {
    nodes: [between],
    layout: 'full',
    fallback: undefined,
    token: 'secret',
    tls: { ca: tls.cert },
  })
  const bytes = Buffer.concat(seen)
  assert.ok(bytes.length > folder.table.totalBytes)
  assert.equal(bytes.indexOf('DSCB'), -1)
  assert.equal(bytes.indexOf(sampleBytes(5, lengthOf(5)).subarray(0, 64)), -1)
})

for (const { name, ca, isNodeEncrypted } of [
  { name: 'whose certificate nobody vouches for', ca: undefined, isNodeEncrypted: true },
  { name: 'whose certificate another authority made', ca: 'another', isNodeEncrypted: true },
  { name: 'that does not encrypt', ca: 'another', isNodeEncrypted: false },
]) {
  test(`a feed that wants TLS refuses a storage node ${name}`, async (context) => {
    const folder = await makeFolder(context)
    const node = await serve(context, folder, { tls: isNodeEncrypted ? readCertificate(context) : undefined })
    const tls = { ca: ca && readCertificate(context).cert }
    await assert.rejects(
      nodeSupply({ nodes: [node], layout: 'full', fallback: undefined, token: undefined, tls }),
      { code: 'FEED_GONE' },
    )
  })
}

for (const { name, change } of [
  { name: 'of another version of the data', change: 'fingerprint' },
  { name: 'with another token', change: 'token' },
  { name: 'that hold another stripe than their place says', change: 'stripe' },
] as const) {
  test(`storage nodes ${name} are refused before anything is read`, async (context) => {
    const folder = await makeFolder(context)
    const stripe = change === 'stripe' ? { index: 1, count: 2 } : undefined
    const node = await serve(context, folder, { token: 'right', stripe })
    const other = await makeFolder(context)
    if (change === 'fingerprint') other.table.bytes[50]! ^= 1
    const { openSampleTable } = await import('../../samples/sample-table.js')
    const fallback = {
      kind: 'folder',
      folder: { ...other, table: openSampleTable(other.table.bytes) },
    } as const
    const token = change === 'token' ? 'wrong' : 'right'
    await assert.rejects(nodeSupply({ nodes: [node], layout: 'striped', fallback, token }), (error) =>
      isDscError(error, 'FEED_STATE_MISMATCH', 'FEED_PROTOCOL'),
    )
  })
}
