import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { DscError } from '../failure/dsc-error.js'

/** In DER, the head before the 32 bytes of an Ed25519 key. */
const DER_HEAD = Buffer.from('302a300506032b6570032100', 'hex')
const TRUSTED = 'trusted comment: '

/** A public key of minisign. */
export interface SigningKey {
  /** By which signatures name it, as minisign prints it. */
  readonly id: string
  readonly key: KeyObject
}

/** Parses a public key of minisign: its line, as `minisign -P` takes it, or the file. Throws a RangeError. */
export function parseSigningKey(text: string): SigningKey {
  const line = text.trim().split('\n').at(-1) ?? ''
  const bytes = Buffer.from(line, 'base64')
  if (bytes.length !== 42 || bytes.toString('latin1', 0, 2) !== 'Ed')
    throw new RangeError(
      `expected a public key of minisign (RW…), found ${JSON.stringify(line.slice(0, 60))}`,
    )
  const der = Buffer.concat([DER_HEAD, bytes.subarray(10)])
  return { id: readId(bytes), key: createPublicKey({ key: der, format: 'der', type: 'spki' }) }
}

/**
 * Throws SIGNATURE_INVALID unless `signature` (a .minisig file) says that the holder of `key` signed `content`, which is
 * called `what`. Gives the signature's trusted comment, which is signed, too.
 */
export function verifySignature(
  content: Uint8Array,
  signature: string,
  { id, key, what }: SigningKey & { readonly what: string },
): string {
  const fail = (found: string) =>
    new DscError('SIGNATURE_INVALID', `${what}: expected a signature by the key ${id}, found ${found}`, {
      hint: 'ask its publisher for the files and the key; use nothing from there until then',
    })
  const [, line = '', comment = '', lastLine = ''] = signature.split(/\r?\n/)
  const [bytes, last] = [Buffer.from(line, 'base64'), Buffer.from(lastLine, 'base64')]
  const algorithm = bytes.toString('latin1', 0, 2)
  const isWhole = bytes.length === 74 && last.length === 64 && comment.startsWith(TRUSTED)
  // "ED" signs the BLAKE2b of the content; "Ed", of minisign before 0.10, the content itself.
  if (!isWhole || !/^E[dD]$/.test(algorithm)) throw fail('what is no signature of minisign')
  if (readId(bytes) !== id) throw fail(`one by ${readId(bytes)}`)
  const own = bytes.subarray(10)
  const signed = algorithm === 'ED' ? createHash('blake2b512').update(content).digest() : content
  if (!verify(null, signed, key, own)) throw fail('one of other content')
  const trusted = comment.slice(TRUSTED.length)
  if (!verify(null, Buffer.concat([own, Buffer.from(trusted)]), key, last)) throw fail('another comment')
  return trusted
}

function readId(bytes: Buffer): string {
  return bytes.readBigUInt64LE(2).toString(16).toUpperCase().padStart(16, '0')
}
