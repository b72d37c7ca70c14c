import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Files written by pyarrow and Hugging Face's datasets (scripts/make-parquet-fixtures.py), with rows.json. */
export const PARQUET_FIXTURES = fileURLToPath(new URL('../../fixtures/parquet', import.meta.url))

/** Copies fixtures into a folder: path in it → name of the fixture. */
export function copyParquet(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, fixture] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    copyFileSync(join(PARQUET_FIXTURES, fixture), join(folder, path))
  }
}

/** A file whose levels claim that a value is repeated two billion times. */
export function runningOnParquet(): Buffer {
  const bytes = readFileSync(join(PARQUET_FIXTURES, 'v2.parquet'))
  bytes[2930] = 204
  return bytes
}
