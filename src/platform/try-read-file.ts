import { readFileSync } from 'node:fs'

/** The text of a file; undefined if it is missing, or not for this user. */
export function tryReadFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
