import type { Share } from '../../model/policy.js'
import { isGroupMember } from '../../platform/group-membership.js'
import { findAccountName } from '../../platform/this-user.js'

/**
 * Whom a call works for, as shares name them: the user, the Slurm account, and those groups that have a share. The
 * user is the one whose rights the process has; for root in a prolog, the one whose job it is. The account is what
 * the environment says: only the cluster's own prolog can vouch for it.
 */
export function findParties(options: {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly shares: readonly Share[] | undefined
}): readonly string[] {
  const { environment, shares = [] } = options
  const isRoot = process.geteuid?.() === 0
  const jobUser = isRoot ? environment.SLURM_JOB_USER : undefined
  const user = jobUser || findAccountName()
  const account = environment.SLURM_JOB_ACCOUNT
  const groups = shares
    .map(({ party }) => /^group:(.*)$/.exec(party)?.[1])
    .filter((group) => group !== undefined && isGroupMember(group, jobUser || undefined))
  return [
    `user:${user}`,
    ...(account ? [`account:${account}`] : []),
    ...groups.map((group) => `group:${group}`),
  ]
}
