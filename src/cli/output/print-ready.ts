import type { Leased } from '../../cache/api/node-api.js'
import { describePrepared } from '../../cache/prepare/describe-prepared.js'
import { redactText } from '../../failure/redact.js'
import { writeAll } from '../../platform/standard-streams.js'

/** Prints what `notePrepared` and `reportPaths` do of a copy that was ready, without a reporter, which takes a millisecond. */
export function printReady(
  leased: Leased,
  { isJson, isQuiet }: { readonly isJson: boolean; readonly isQuiet: boolean },
): void {
  const end = isJson || isQuiet ? undefined : describeEnd(leased)
  if (end !== undefined) writeAll('stderr', `${redactText(end)}\n`)
  const answer = isJson ? JSON.stringify(describePrepared(leased, leased.lease)) : leased.copy.path
  writeAll('stdout', `${redactText(answer)}\n`)
}

/** Says until when a process has the lease; undefined: none has. */
export function describeEnd({ copy, lease }: Pick<Leased, 'copy' | 'lease'>): string | undefined {
  if (lease.holder.kind !== 'process') return undefined
  return `${copy.dataset}: leased until process ${lease.holder.pid} exits`
}
