import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { removeDirectory } from '../platform/remove-directory.js'

/** A new directory, removed with all its contents, even read-only files, when the test ends. */
export async function temporaryDirectory(context: Pick<TestContext, 'after'>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsc-test-'))
  context.after(async () => {
    try {
      await rm(path, { recursive: true, force: true, maxRetries: 5 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
      await removeDirectory(path) // views of hub repositories have folders that their owner may not write to
    }
  })
  return path
}
