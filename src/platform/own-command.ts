import { isSea } from 'node:sea'

/** The command that starts this dsc again: the executable alone, or Node with the program's file. */
export function findOwnCommand(): readonly string[] {
  return isSea() ? [process.execPath] : [process.execPath, process.argv[1]!]
}
