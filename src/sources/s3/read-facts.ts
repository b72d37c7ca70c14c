import type { Headers } from '../../http/answer-listener.js'
import { SOURCE_CHECKSUMS } from '../../model/manifest.js'
import type { ObjectFacts, SourceChecksum } from '../../proof/object-facts.js'

/** Reads what the head of an answer says about the object. */
export function readFacts(headers: Headers, uploadPartBytes: number | null): ObjectFacts {
  const encryption = headers['x-amz-server-side-encryption']
  const isEtagMd5 =
    (encryption === undefined || encryption === 'AES256') &&
    headers['x-amz-server-side-encryption-customer-algorithm'] === undefined
  return { checksums: readChecksums(headers), uploadPartBytes, isEtagMd5 }
}

function readChecksums(headers: Headers): SourceChecksum[] {
  const checksums: SourceChecksum[] = []
  for (const algorithm of SOURCE_CHECKSUMS) {
    const value = headers[`x-amz-checksum-${algorithm}`]
    if (typeof value !== 'string') continue
    const isComposite = headers['x-amz-checksum-type'] === 'COMPOSITE' || /-\d+$/.test(value)
    checksums.push({ algorithm, value, isComposite })
  }
  return checksums
}
