/** A staging as the record shows it. */
export interface KnownStaging {
  readonly node: string
  readonly createdAtMs: number
  /** The newest lease of its stager, with the task that it stages for; undefined without a lease. */
  readonly stager: { readonly task: string; readonly createdAtMs: number } | undefined
  /** Whether it is being staged right now, and not given up. */
  readonly isStaging: boolean
}

/**
 * Whether `other` may already have objects that this node (`own`) is to read from the store. Asking it for each of them
 * would cost a request per object and node, so a node that one command told to begin together with this one (`invited`)
 * is not asked: it knew from the start which objects are this node's.
 *
 * | the other | has none of them |
 * |---|---|
 * | has given up, or is silent | no: it stages no more, but the objects it has are used |
 * | began later than this node | yes |
 * | was told together with this node, and both began then | yes |
 * | the same, and one of them goes on with the rest of an earlier attempt | no |
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

/** Whether its stager began the copy: then both were recorded at the same time. */
function isFirstAttempt({ createdAtMs, stager }: KnownStaging): boolean {
  return stager?.createdAtMs === createdAtMs
}
