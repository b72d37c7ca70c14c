/** A staging as the record knows it. */
export interface KnownStaging {
  readonly node: string
  readonly createdAtMs: number
  /** The newest lease of its stager, with the task that it stages for; undefined: nobody has one. */
  readonly stager: { readonly task: string; readonly createdAtMs: number } | undefined
  /** Whether somebody stages it just now, and has not given up. */
  readonly isStaging: boolean
}

/**
 * Whether `other` may have read objects that are `own`'s to read from the store. Asking it for each of them would cost
 * a question per object and node, so whoever was told by one command, `invited`, to begin together is not asked: it
 * knew from the first whose they are.
 *
 * | the other | has none of them |
 * |---|---|
 * | has given up, or is silent | no: it stages no more, what it has is taken |
 * | began later than this node | yes |
 * | was told together with this node, and both began then | yes |
 * | the same, and one of them goes on with what was left of an earlier attempt | no |
 * | began earlier | no |
 */
export function mayHave(
  other: KnownStaging,
  own: KnownStaging | undefined,
  invited: ReadonlySet<string>,
): boolean {
  if (!other.isStaging) return true
  if (own === undefined) return true
  if (other.createdAtMs > own.createdAtMs) return false
  const wereToldTogether = invited.has(other.node) && other.stager?.task === own.stager?.task
  return !(wereToldTogether && isFirstAttempt(other) && isFirstAttempt(own))
}

/** Whether its stager began the copy: both are written down at once. */
function isFirstAttempt({ createdAtMs, stager }: KnownStaging): boolean {
  return stager?.createdAtMs === createdAtMs
}
