import type { Share } from '../../model/policy.js'
import { isGroupMember } from '../../platform/group-membership.js'
import { findAccountName } from '../../platform/this-user.js'

/**
 * The parties that a call works for, as shares name them: the user, the Slurm account, and the user's groups that have
 * a share. The user is the one whose permissions the process has or, for root in a prolog, the owner of the job. The
 * account comes from the environment: only the cluster's own prolog can vouch for it.
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
