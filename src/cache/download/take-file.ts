import { constants, copyFileSync, linkSync, lstatSync, type Stats } from 'node:fs'
import { changeFileMode } from '../../platform/held-path.js'

const REFLINK = (from: string, to: string) =>
  copyFileSync(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL)
const COPY = (from: string, to: string) => copyFileSync(from, to, constants.COPYFILE_EXCL)

/** For a file that neither copy will change. */
export const LINKING = [REFLINK, linkSync, COPY]
/** For a file whose owner may change it. */
export const COPYING = [REFLINK, COPY]

/** Whether `from` could become `to`, by the first way that works. */
export function takeFile(
  from: string,
  to: string,
  options: { readonly stats: Stats; readonly places: readonly ((from: string, to: string) => void)[] },
): boolean {
  const { stats, places } = options
  for (const place of places) {
    try {
      place(from, to)
      if ((stats.mode & 0o222) !== 0) changeFileMode(to, 0o444)
      return true
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      if (code === 'EEXIST') return lstatSync(to).ino === stats.ino // linked before a kill, but not recorded
      if (code === 'ENOSPC' || code === 'EDQUOT') throw error
    }
  }
  return false
}
