import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'

/** Writes all or nothing: a reader never sees half a file. Makes its folder. `hint` is for a place that refuses. */
export async function writeWhole(path: string, text: string, hint: string): Promise<void> {
  const partPath = `${path}.${process.pid}.part`
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(partPath, text)
    await rename(partPath, path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new DscError('CONFIG_INVALID', `cannot write ${path}: ${code}`, { hint, cause: error })
  }
}
