import type { GivenPasses } from '../../cache/surroundings.js'
import type { AgentAccess } from './agent-client.js'

/** Credentials of a feed for the agents that serve copies, and the authority by which it trusts them. */
export interface CopyAccess extends Pick<AgentAccess, 'ca'> {
  /** The agents' token, or a pass for this copy alone that is good now. */
  readonly tokenFor: (copyId: string) => Promise<string | undefined>
}

/**
 * Access to copies by passes. New ones are asked for when half of their time is over: a service that is restarted then
 * delays nobody, and those that it gave before are still good.
 */
export async function openPasses(
  copyIds: readonly string[],
  ask: (copyIds: readonly string[]) => Promise<GivenPasses>,
  nowMs: () => number = () => performance.now(),
): Promise<CopyAccess> {
  let askedAtMs = nowMs()
  let given = await ask(copyIds)
  let asking: Promise<void> | undefined
  const renew = () => {
    const atMs = nowMs()
    asking ??= ask(copyIds)
      .then((next) => {
        askedAtMs = atMs
        given = next
      })
      .finally(() => {
        asking = undefined
      })
    return asking
  }
  return {
    ca: given.ca,
    async tokenFor(copyId) {
      const ageMs = nowMs() - askedAtMs
      const renewal = ageMs > given.lastsMs / 2 ? renew() : undefined
      if (ageMs > given.lastsMs) await renewal
      else renewal?.catch(() => {}) // it is asked for again
      return given.passes[copyIds.indexOf(copyId)] ?? undefined
    },
  }
}
