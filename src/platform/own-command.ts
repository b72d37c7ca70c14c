import { isSea } from 'node:sea'

/** The words that start this dsc again: the executable file alone, or Node with the program's file. */
export function findOwnCommand(): readonly string[] {
  return isSea() ? [process.execPath] : [process.execPath, process.argv[1]!]
}
