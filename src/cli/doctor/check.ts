/** What a check of `dsc doctor` found. */
export interface Check {
  readonly name: string
  /** Only `failed` changes the exit code; `skipped` could not be tried. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What was found, with numbers. */
  readonly detail: string
  /** What to do about a warning or failure. */
  readonly hint?: string | undefined
}

/** A check that found what it should. */
export const ok = (name: string, detail: string): Check => ({ name, status: 'ok', detail })
/** A check that does not apply here; `detail` says why. */
export const skipped = (name: string, detail: string): Check => ({ name, status: 'skipped', detail })
/** A check that found what works, but should be put right. */
export const warning = (name: string, detail: string, hint: string): Check => ({
  name,
  status: 'warning',
  detail,
  hint,
})
/** A check that found what does not work. */
export const failed = (name: string, detail: string, hint?: string): Check => ({
  name,
  status: 'failed',
  detail,
  hint,
})

/** The code of a failed system call (`ENOSPC`), for details; rethrows what is no system call's failure. */
export function errorCodeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (typeof code !== 'string') throw error
  return code
}
