import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SCRIPTS = fileURLToPath(new URL('../../scripts/package', import.meta.url))
/** The name of the executable for this machine. */
export const OWN_NAME = `dsc-${process.platform}-${process.arch}`

/** A key of minisign without a password: the file with the secret, and the line with the public one. */
export interface KeyPair {
  readonly path: string
  readonly publicKey: string
}

/** Makes a key as `minisign -G -W` does. */
export function makeKeyPair(path: string): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
  const open = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const id = randomBytes(8)
  const head = Buffer.concat([Buffer.from('Ed\0\0B2'), Buffer.alloc(48)])
  const bytes = Buffer.concat([head, id, seed, open, Buffer.alloc(32)])
  writeFileSync(path, `untrusted comment: minisign encrypted secret key\n${bytes.toString('base64')}\n`)
  return { path, publicKey: Buffer.concat([Buffer.from('Ed'), id, open]).toString('base64') }
}

/** The text of an executable that says it is dsc `version`; `before` are lines of a shell that it runs first. */
export function pretendDsc(version: string, before = ''): string {
  return `#!/bin/sh\n${before}\necho ${version}\n`
}

/** Writes a release as `npm run package -- --sign` does, with one executable. */
export async function makeRelease(
  folder: string,
  { key, executable, name = OWN_NAME }: { key: KeyPair; executable: string; name?: string },
): Promise<void> {
  const { writeChecksums } = await import(join(SCRIPTS, 'inventory.mjs'))
  const { readSecretKey, signFile } = await import(join(SCRIPTS, 'sign-sums.mjs'))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), executable, { mode: 0o644 })
  writeFileSync(join(folder, 'dsc_data-0.2.0-py3-none-any.whl'), 'a wheel')
  signFile(writeChecksums(folder), readSecretKey(key.path), 'dsc 0.2.0')
}
