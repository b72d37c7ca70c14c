import { open, writeFile } from 'node:fs/promises'
import { DscError } from '../../failure/dsc-error.js'
import { asUsageError } from '../arguments/as-usage-error.js'

/** The mark among the first bytes of a file that shows it is a result of dsc. */
type ResultMark = 'dsc.mem.plan' | 'dsc.mem.profile' | 'dsc.exchange.plan' | 'dsc.exchange.link' | '<svg'

const HEAD_BYTES = 1024

/** Lets a result replace only an earlier result of its kind; CONFIRMATION_REQUIRED names any other file. */
export async function requireOwnFile(path: string | undefined, mark: ResultMark): Promise<void> {
  const head = path === undefined ? undefined : await readHead(path)
  if (head === undefined || head === '' || head.includes(mark)) return
  throw new DscError(
    'CONFIRMATION_REQUIRED',
    `${path} exists and was not written by this command; it stays as it is`,
    { hint: 'name another file, or move that one away' },
  )
}

/** Writes a result as JSON to the user's path; USAGE if that is not possible. */
export async function writeResult(path: string, result: object): Promise<void> {
  const refused = {
    message: `cannot write ${path}`,
    hint: 'name a file in a folder that exists and you may write to',
  }
  await asUsageError(refused, () => writeFile(path, `${JSON.stringify(result, undefined, 1)}\n`))
}

/** The first bytes of a file; undefined if there is no readable regular file. */
async function readHead(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path)
    if (!(await file.stat()).isFile()) return undefined
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } catch {
    return undefined // writing it will report the problem
  }
}
