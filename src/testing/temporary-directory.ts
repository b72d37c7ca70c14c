import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A new directory, removed with all its contents, even read-only files, when the test ends. */
export async function temporaryDirectory(context: Pick<TestContext, 'after'>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsc-test-'))
  context.after(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  return path
}
