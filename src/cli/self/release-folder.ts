import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import { parseSourceUrl } from '../../model/source-url.js'
import { readWebAuthorities } from '../../sources/read-certificates.js'
import { WebClient } from '../../sources/web-client.js'
import { WEB_DIALECT } from '../../sources/web-failure.js'

/** A folder with what `npm run package` made, on this machine or a web server. */
export interface ReleaseFolder {
  /** Reads a file whole; from a server, `maxBytes` at most. Rejects with SOURCE_NOT_FOUND if it is not there. */
  read(name: string, maxBytes: number): Promise<Buffer>
  close(): void
}

/** Opens the folder at a path, or a file://, https:// or http:// URL. */
export async function openReleaseFolder(from: string, signal?: AbortSignal): Promise<ReleaseFolder> {
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
