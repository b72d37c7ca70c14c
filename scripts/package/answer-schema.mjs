// Writes the JSON Schema of all answers beside the other pages of the reference. Packages carry it; the repository does
// not, as it is 8,000 lines that follow from the source.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

/** Writes docs/reference/dsc-output.schema.json as `dsc self --schemas` prints it. */
export function writeAnswerSchema() {
  const schema = execFileSync(process.execPath, [join(ROOT, 'bin/dsc.js'), 'self', '--schemas'])
  writeFileSync(join(ROOT, 'docs/reference/dsc-output.schema.json'), schema)
}

if (import.meta.main) writeAnswerSchema()
