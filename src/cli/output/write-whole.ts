import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'

/** Writes all or nothing: a reader never sees half a file. Makes its folder. `hint` is for a place that refuses. */
export async function writeWhole(path: string, text: string, hint: string): Promise<void> {
  const partPath = `${path}.${process.pid}.part`
  try {
    await makeFolders(dirname(path))
    await writeFile(partPath, text)
    await rename(partPath, path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new DscError('CONFIG_INVALID', `cannot write ${path}: ${code}`, { hint, cause: error })
  }
}

/** Makes a folder and those above it. Node's own way reports a read-only file system as ENOENT. */
async function makeFolders(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true })
  } catch (error) {
    throw (await findRefusal(path)) ?? error
  }
}

/** The kernel's refusal of the uppermost missing folder. */
async function findRefusal(path: string): Promise<NodeJS.ErrnoException | undefined> {
  const refusal = await mkdir(path).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  )
  return refusal?.code === 'ENOENT' && path !== dirname(path) ? findRefusal(dirname(path)) : refusal
}
