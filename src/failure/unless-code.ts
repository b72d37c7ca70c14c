/** The result of `act`; undefined if it fails with one of these codes, of the system or of a DscError. */
export function unlessCode<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    return undefinedFor(codes, error)
  }
}

/** Like `unlessCode`, for work that is under way. */
export function unlessRejected<T>(codes: readonly string[], work: Promise<T>): Promise<T | undefined> {
  return work.catch((error: unknown) => undefinedFor(codes, error))
}

function undefinedFor(codes: readonly string[], error: unknown): undefined {
  const code = (error as { readonly code?: string } | null)?.code
  if (code === undefined || !codes.includes(code)) throw error
}
