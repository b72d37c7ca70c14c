import { join } from 'node:path'
import { findHomeDirectory } from '../platform/this-user.js'

/** Where tables of samples are kept between runs. */
export function samplesCacheFolder(environment: Readonly<Record<string, string | undefined>>): string {
  return join(environment.XDG_CACHE_HOME || join(findHomeDirectory(), '.cache'), 'dsc', 'samples')
}
