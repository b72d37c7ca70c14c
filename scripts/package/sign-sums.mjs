// Signs the list of sums as minisign does, which few machines that build have.
import { createHash, createPrivateKey, sign } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'

/** In DER, the head before the 32 bytes of a private Ed25519 key. */
const DER_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Reads a secret key of minisign that has no password (`minisign -G -W`): how to sign, and its public key. */
export function readSecretKey(path) {
  const bytes = Buffer.from(readFileSync(path, 'utf8').trim().split('\n').at(-1), 'base64')
  if (bytes.length !== 158 || bytes.toString('latin1', 0, 2) !== 'Ed')
    throw new Error(`${path}: expected a secret key of minisign`)
  if (bytes.readUInt16LE(2) !== 0)
    throw new Error(
      `${path}: the key has a password. Give its public key with --key, then: minisign -S -m SHA256SUMS`,
    )
  const [id, seed, open] = [bytes.subarray(54, 62), bytes.subarray(62, 94), bytes.subarray(94, 126)]
  return {
    id,
    key: createPrivateKey({ key: Buffer.concat([DER_HEAD, seed]), format: 'der', type: 'pkcs8' }),
    publicKey: Buffer.concat([Buffer.from('Ed'), id, open]).toString('base64'),
  }
}

/** Writes `<path>.minisig`. The comment is signed, too. */
export function signFile(path, { id, key }, comment) {
  const digest = createHash('blake2b512').update(readFileSync(path)).digest()
  const signature = sign(null, digest, key)
  const last = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key)
  const line = Buffer.concat([Buffer.from('ED'), id, signature]).toString('base64')
  writeFileSync(
    `${path}.minisig`,
    `untrusted comment: signature of dsc\n${line}\ntrusted comment: ${comment}\n${last.toString('base64')}\n`,
  )
  return `${path}.minisig`
}
