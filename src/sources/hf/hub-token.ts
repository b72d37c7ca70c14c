import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { requireSendable } from '../sendable-secret.js'
import { findHubHome } from './hub-home.js'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Finds the token that the hub's own clients would send: HF_TOKEN, else the file HF_TOKEN_PATH, else `token` in HF_HOME
 * (default `~/.cache/huggingface`), which `hf auth login` writes. Undefined if no token is found. Rejects with
 * CONFIG_INVALID when a file that was named cannot be read, or when the token has characters that no header can carry.
 * Source: huggingface_hub, `utils/_auth.py` and `constants.py`.
 */
export async function findHubToken(
  environment: Environment,
  homeDirectory: string,
): Promise<string | undefined> {
  for (const variable of ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN']) {
    const given = clean(environment[variable], variable)
    if (given !== undefined) return given
  }
  const named = environment.HF_TOKEN_PATH
  const path = named || join(findHubHome(environment, homeDirectory), 'token')
  try {
    return clean(await readFile(path, 'utf8'), path)
  } catch (error) {
    if (error instanceof DscError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (!named && (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES')) return undefined
    throw new DscError('CONFIG_INVALID', `the token of the hub cannot be read: ${message}`, {
      cause: error,
      hint: 'set HF_TOKEN, or HF_TOKEN_PATH to a file that this user may read',
    })
  }
}

/** As huggingface_hub does: line ends are no part of a token. `named`: the variable or file that holds it. */
function clean(raw: string | undefined, named: string): string | undefined {
  const token = raw?.replace(/[\r\n]/g, '').trim()
  return token ? requireSendable(token, { named, hint: 'copy the token again: hf auth login' }) : undefined
}
