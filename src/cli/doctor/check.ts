/** The result of a check of `dsc doctor`. */
export interface Check {
  readonly name: string
  /** Only `failed` changes the exit code; `skipped` means that the check could not be tried. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** The finding, with numbers. */
  readonly detail: string
  /** The remedy for a warning or failure. */
  readonly hint?: string | undefined
}

/** A check that passed. */
export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail })
/** A check that does not apply here; `detail` says why. */
export const skipped = (name: string, detail: string): Check => ({ name, status: 'skipped', detail })
/** A check that found something that works, but needs attention. */
export const warning = (name: string, detail: string, hint: string): Check => ({
  name,
  status: 'warning',
  detail,
  hint,
})
/** A check that found something broken. */
export const failed = (name: string, detail: string, hint?: string): Check => ({
  name,
  status: 'failed',
  detail,
  hint,
})

/** The code of a failed system call (`ENOSPC`), for details; rethrows any other failure. */
export function errorCodeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (typeof code !== 'string') throw error
  return code
}
