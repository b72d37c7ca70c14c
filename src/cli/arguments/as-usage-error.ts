import { DscError, isDscError } from '../../failure/dsc-error.js'

/** Runs `work` on something that the arguments name; a system error (address taken, no such file) becomes USAGE. */
export async function asUsageError<Value>(
  refused: { readonly message: string; readonly hint: string },
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (isDscError(error) || syscall === undefined) throw error
    throw new DscError('USAGE', `${refused.message} (${code})`, { hint: refused.hint, cause: error })
  }
}

/** The error for an address that dsc cannot listen on. */
export function cannotListen(host: string, port: number) {
  return {
    message: `cannot listen on ${host}:${port}`,
    hint: 'give --listen another port, or 0 for a free one',
  }
}
