import { join } from 'node:path'

/** Name of the manifest in a copy directory. Apart from what opens it: a warm `dsc prepare` needs the name alone. */
export function manifestPath(copyDirectory: string): string {
  return join(copyDirectory, 'manifest.db')
}
