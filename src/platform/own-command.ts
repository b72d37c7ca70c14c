import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { isSea } from 'node:sea'

/** The command that starts this dsc again: the executable alone, or Node with the program's file. */
export function findOwnCommand(): readonly string[] {
  return isSea() ? [process.execPath] : [process.execPath, process.argv[1]!]
}

/** The folder above bin/dsc.js: of the checkout, of an installed package, or where the executable unpacked itself. */
export function findProgramFolder(): string {
  return dirname(dirname(realpathSync(process.argv[1]!)))
}
