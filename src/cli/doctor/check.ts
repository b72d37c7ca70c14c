/** What a check of `dsc doctor` found. */
export interface Check {
  readonly name: string
  /** Only `failed` changes the exit code; `skipped` could not be tried. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What was found, with numbers. */
  readonly detail: string
  /** What to do about a warning or failure. */
  readonly hint?: string
}

export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail })
export const skipped = (name: string, detail: string): Check => ({ name, status: 'skipped', detail })
export const warning = (name: string, detail: string, hint: string): Check => ({
  name,
  status: 'warning',
  detail,
  hint,
})
export const failed = (name: string, detail: string, hint?: string): Check => ({
  name,
  status: 'failed',
  detail,
  ...(hint !== undefined && { hint }),
})

/** The code of a failed system call (`ENOSPC`), for details; rethrows what is no system call's failure. */
export function errorCodeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (typeof code !== 'string') throw error
  return code
}
