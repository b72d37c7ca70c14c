import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
} from 'node:fs'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Account } from '../../platform/user-directory.js'
import { isGiven } from './read-facts.js'

/**
 * Makes a folder of root's into one of the service's; the folders above stay root's. They are judged once more when all
 * of them are there, for only then can nobody else replace one; the last one is changed by its descriptor. Throws
 * CACHE_ROOT_INVALID.
 */
export function giveFolder(path: string, user: Account): void {
  mkdirSync(path, { recursive: true })
  isGiven(path, user)
  const real = realpathSync(path)
  isGiven(real, user)
  const descriptor = openSync(real, constants.O_DIRECTORY | constants.O_NOFOLLOW)
  using _ = atEndNow(() => closeSync(descriptor))
  const { uid } = fstatSync(descriptor)
  if (uid !== 0 && uid !== user.uid) throw replaced(path)
  fchmodSync(descriptor, 0o755) // before the look into it: others may add nothing from now on
  if (uid !== user.uid && readdirSync(real).length > 0) throw replaced(path)
  fchownSync(descriptor, user.uid, user.gid)
}

function replaced(path: string): DscError {
  return new DscError('CACHE_ROOT_INVALID', `${path} changed while it was given to the service`, {
    hint: `ls -la ${path} shows who has written there`,
  })
}
