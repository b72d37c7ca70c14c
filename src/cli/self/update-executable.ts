import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { atEndNow } from '../../failure/closers.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { type SigningKey, verifySignature } from '../../proof/minisign.js'
import { readWebAuthorities } from '../../sources/read-certificates.js'
import { WebClient } from '../../sources/web-client.js'
import { WEB_DIALECT } from '../../sources/web-failure.js'
import { findPackage } from './find-package.js'
import { isOlder } from './is-older.js'
import { replaceExecutable } from './replace-executable.js'

const SUMS = 'SHA256SUMS'
/** An executable has 117 MB; a list of sums and its signature, 1 KB. */
const MAX_BYTES = { executable: 1024 ** 3, list: 1024 ** 2 }
/** A first start unpacks the program, in a second. */
const START_MS = 60_000

interface UpdateOptions {
  /** Path or URL of a folder with executables, SHA256SUMS and its signature. */
  readonly from: string
  /** The executable that is replaced; a link is followed. */
  readonly executable: string
  readonly key: SigningKey
  readonly allowsDowngrade: boolean
  /** Everything but the replacement. */
  readonly isDryRun: boolean
  readonly signal?: AbortSignal
}

/** The result of an update. */
interface Update {
  /** Undefined: the old executable does not start. */
  readonly oldVersion: string | undefined
  readonly newVersion: string | undefined
  /** Whether the executable is the one of the release by now; in a dry run, whether it was before. */
  readonly state: 'replaced' | 'current' | 'would replace'
}

/** Throws UPDATE_REFUSED, with the command that helps, if the executable is part of a package. */
export async function requireStandalone(executable: string): Promise<void> {
  const owner = await findPackage(executable)
  if (owner === undefined) return
  throw new DscError('UPDATE_REFUSED', `${executable} is part of ${owner.name}`, { hint: owner.command })
}

/**
 * Replaces an executable by the one for this machine in a signed release. Nothing is written or run before the signature
 * and the digest are right. The new one is tried beside the old one: it must start here, and is asked for its version,
 * so that the list of sums needs none.
 */
export async function updateExecutable(options: UpdateOptions): Promise<Update> {
  const { executable, from, key, signal } = options
  const name = `dsc-${process.platform}-${process.arch}`
  const folder = await openReleaseFolder(from, signal)
  using _ = atEndNow(() => folder.close())
  const sha256 = await findDigest(folder, { name, from, key })
  const oldVersion = await askVersion(executable, signal).catch(() => undefined)
  if (digest(readFileSync(executable)) === sha256)
    return { oldVersion, newVersion: oldVersion, state: 'current' }
  const content = await folder.read(name, MAX_BYTES.executable)
  const found = digest(content)
  if (found !== sha256)
    throw new DscError(
      'CHECKSUM_MISMATCH',
      `${from}: expected ${name} with SHA-256 ${sha256}, found ${content.length} bytes with ${found}`,
      { hint: 'copy the file there again, then run the same command again' },
    )
  let newVersion: string | undefined
  const isReplaced = await replaceExecutable(executable, content, async (candidate) => {
    newVersion = await askVersion(candidate, signal)
    if (oldVersion !== undefined && isOlder(newVersion, oldVersion) && !options.allowsDowngrade)
      throw new DscError('UPDATE_REFUSED', `${from} has dsc ${newVersion}, older than this ${oldVersion}`, {
        hint: 'to go back all the same: --allow-downgrade (an older dsc may refuse the record)',
      })
    return !options.isDryRun
  })
  return { oldVersion, newVersion, state: isReplaced ? 'replaced' : 'would replace' }
}

/** The SHA-256 of a file according to the signed list of sums. */
async function findDigest(
  folder: ReleaseFolder,
  { name, from, key }: { readonly name: string; readonly from: string; readonly key: SigningKey },
): Promise<string> {
  const signature = await folder.read(`${SUMS}.minisig`, MAX_BYTES.list)
  const sums = await folder.read(SUMS, MAX_BYTES.list)
  verifySignature(sums, signature.toString(), { ...key, what: `${from}: ${SUMS}` })
  const line = sums
    .toString()
    .split(/\r?\n/)
    .find((entry) => entry.replace(/^\S+ [ *]/, '') === name)
  const sha256 = /^[0-9a-f]{64}(?= )/.exec(line ?? '')?.[0]
  if (sha256 !== undefined) return sha256
  throw new DscError('SOURCE_NOT_FOUND', `${from}: ${SUMS} lists no ${name}`, {
    hint: `expected the executable for this machine: npm run package -- executable, on one like it`,
  })
}

function digest(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Starts an executable, and gives the version that it prints. */
async function askVersion(path: string, signal: AbortSignal | undefined): Promise<string> {
  const fail = (found: string, cause?: unknown) =>
    new DscError('UPDATE_REFUSED', `the new dsc does not start here: ${found}`, {
      cause,
      hint: 'it may need a newer glibc (2.34), or a folder whose files may run',
    })
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: START_MS, signal })
    if (/^\d+\.\d+\.\d+\S*\n$/.test(stdout)) return stdout.trim()
    throw fail(`expected a version, found ${JSON.stringify(stdout.slice(0, 100))}`)
  } catch (error) {
    throwIfStopped(signal)
    throw error instanceof DscError ? error : fail((error as Error).message, error)
  }
}

/** A folder with what `npm run package` made, on this machine or a web server. */
interface ReleaseFolder {
  /** Reads a file whole; from a server, `maxBytes` at most. Rejects with SOURCE_NOT_FOUND if it is not there. */
  read(name: string, maxBytes: number): Promise<Buffer>
  close(): void
}

/** Opens the folder at a path, or a file://, https:// or http:// URL. */
async function openReleaseFolder(from: string, signal?: AbortSignal): Promise<ReleaseFolder> {
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(from)
  const parsed = parseWord(parseSourceUrl, isUrl ? from : `${pathToFileURL(resolve(from))}/`)
  if (parsed.scheme === 'file') return { read: readLocal(parsed.directory), close() {} }
  if (parsed.scheme !== 'https' && parsed.scheme !== 'http')
    throw new DscError('USAGE', `expected a folder, or its https:// URL, found ${from}`)
  const home = parsed.url.replace(/[?#].*$/s, '').replace(/\/?$/, '/')
  const client = new WebClient({
    connections: 1,
    ca: await readWebAuthorities(),
    authorize: () => ({}),
    home,
  })
  return {
    async read(name, maxBytes) {
      const what = home + name
      const question = { what, dialect: WEB_DIALECT, maxBytes, signal }
      const { body } = await client.readText(what, question).catch((error: unknown) => {
        throw isDscError(error, 'SOURCE_NOT_FOUND') ? missing(what, error) : error
      })
      return body
    },
    close: () => client.close(),
  }
}

function readLocal(folder: string): ReleaseFolder['read'] {
  return async (name) => {
    const path = join(folder, name)
    try {
      return await readFile(path)
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? missing(path, error) : error
    }
  }
}

function missing(what: string, cause: unknown): DscError {
  return new DscError('SOURCE_NOT_FOUND', `there is no ${what}`, {
    cause,
    hint: 'the folder needs what npm run package -- --sign <key> makes',
  })
}
