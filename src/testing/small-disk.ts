import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'

/**
 * Why a test that needs a disk of its own is skipped, or false: only root may mount one. CI is root, and there
 * such a test must run.
 */
export const whyNoSmallDisk: string | false =
  process.getuid?.() === 0 || process.env.CI !== undefined ? false : 'only root may mount a small file system'

/** Mounts a file system of `sizeBytes` until the test ends, so that percentages and a full disk are real. */
export async function mountSmallDisk(context: TestContext, sizeBytes: number): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsc-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes}`, 'tmpfs', path])
  context.after(async () => {
    await promisify(execFile)('umount', ['--lazy', path])
    await rmdir(path)
  })
  return path
}
