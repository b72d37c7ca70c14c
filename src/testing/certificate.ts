import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Makes a certificate for 127.0.0.1, or for `name`, and its key, under `folder`. It is self-signed, or, with
 * `isSigned`, signed by an unknown authority. Needs no program: some machines lack openssl.
 */
export function makeCertificate(
  folder: string,
  {
    days = 1,
    isSigned = false,
    name,
  }: { readonly days?: number; readonly isSigned?: boolean; readonly name?: string } = {},
): { readonly certFile: string; readonly keyFile: string } {
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const issuer = isSigned ? 'authority' : 'dsc'
  const signingKey = isSigned
    ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    : own.privateKey
  const body = formatBody({ publicKey: own.publicKey, issuer, days, name })
  const signature = sign('sha256', body, signingKey)
  const certificate = der(SEQUENCE, body, SHA256_WITH_RSA, der(BIT_STRING, Buffer.of(0), signature))
  writeFileSync(certFile, formatPem('CERTIFICATE', certificate))
  writeFileSync(keyFile, own.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return { certFile, keyFile }
}

/** The signed part: a TBSCertificate of RFC 5280, section 4.1. */
function formatBody({
  publicKey,
  issuer,
  days,
  name,
}: {
  readonly publicKey: KeyObject
  readonly issuer: string
  readonly days: number
  readonly name: string | undefined
}): Buffer {
  const [from, until] = [Date.now(), Date.now() + days * DAY_MS].map(formatTime)
  const isAuthority = der(SEQUENCE, der(BOOLEAN, Buffer.of(255)))
  const named =
    name === undefined ? der(IP_ADDRESS, Buffer.of(127, 0, 0, 1)) : der(DNS_NAME, Buffer.from(name))
  const names = der(SEQUENCE, named)
  return der(
    SEQUENCE,
    der(FIELD_0, der(INTEGER, Buffer.of(2))), // version 3
    der(INTEGER, Buffer.of(1), randomBytes(8)), // serial number
    SHA256_WITH_RSA,
    formatName(issuer),
    der(SEQUENCE, from!, until!),
    formatName('dsc'),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      FIELD_3,
      der(
        SEQUENCE,
        der(SEQUENCE, identifier('551d13'), der(OCTET_STRING, isAuthority)), // basicConstraints
        der(SEQUENCE, identifier('551d11'), der(OCTET_STRING, names)), // subjectAltName
      ),
    ),
  )
}

const [BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, IDENTIFIER] = [0x01, 0x02, 0x03, 0x04, 0x06]
const [UTF8_STRING, UTC_TIME, SEQUENCE, SET] = [0x0c, 0x17, 0x30, 0x31]
const [DNS_NAME, IP_ADDRESS, FIELD_0, FIELD_3] = [0x82, 0x87, 0xa0, 0xa3]
const SHA256_WITH_RSA = der(SEQUENCE, identifier('2a864886f70d01010b'), Buffer.of(0x05, 0))

/** One DER value: its tag, its length in bytes, its parts. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.of(tag, ...length), content])
}

function identifier(hex: string): Buffer {
  return der(IDENTIFIER, Buffer.from(hex, 'hex'))
}

function formatName(commonName: string): Buffer {
  const value = der(UTF8_STRING, Buffer.from(commonName))
  return der(SEQUENCE, der(SET, der(SEQUENCE, identifier('550403'), value)))
}

/** For example `261125235959Z`; until 2049. */
function formatTime(timeMs: number): Buffer {
  const digits = new Date(timeMs).toISOString().replace(/\D/g, '').slice(2, 14)
  return der(UTC_TIME, Buffer.from(`${digits}Z`))
}

function formatPem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n')
}
