import type { Mode } from './connect-links.js'
import { type ExchangeSession, joinExchange } from './join-exchange.js'
import type { PlanFile } from './plan-files.js'
import { openRendezvous } from './rendezvous/open-rendezvous.js'

/** A plan whose gradients are named `<bucket>.<index>`. */
export const planOf = (
  ranks: number,
  wire: PlanFile['wire'],
  buckets: readonly (readonly number[])[],
): PlanFile => ({
  hash: `test-${ranks}-${wire}`,
  ranks,
  wire,
  buckets: buckets.map((sizes, bucket) => ({
    tensors: sizes.map((elements, index) => ({ name: `${bucket}.${index}`, elements })),
  })),
})

/** Opens a rendezvous and `ranks` sessions in this process, runs `body`, closes everything. */
export async function withSessions(
  plan: PlanFile,
  mode: Mode | undefined,
  body: (sessions: readonly ExchangeSession[]) => Promise<void>,
): Promise<void> {
  await withHosts(Array<undefined>(plan.ranks), { plan, mode }, body)
}

/** The same, with a host name for each rank. */
export async function withHosts(
  hosts: readonly (string | undefined)[],
  { plan, mode }: { readonly plan: PlanFile; readonly mode: Mode | undefined },
  body: (sessions: readonly ExchangeSession[]) => Promise<void>,
): Promise<void> {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const sessions = await Promise.all(
    Array.from(hosts, (hostKey, rank) => joinExchange({ rendezvous, plan, mode, rank, hostKey })),
  )
  try {
    await body(sessions)
  } finally {
    for (const session of sessions) await session.close()
    await rendezvous.close()
  }
}

/** Repeatable numbers in [−0.5, 0.5). */
export function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return (state >>> 8) / 2 ** 24 - 0.5
  }
}

/** Runs one step on all ranks: gradients in, means out, in place. */
export async function runStep(
  sessions: readonly ExchangeSession[],
  gradients: readonly Map<string, Float32Array>[],
) {
  return await Promise.all(
    sessions.map(async (session, rank) => {
      const step = session.beginStep()
      for (const [name, gradient] of gradients[rank]!) await step.add(name, gradient)
      return await step.commit()
    }),
  )
}

/** Random gradients of all ranks, by name. */
export function makeGradients(plan: PlanFile, seed: number, scale: number) {
  const next = random(seed)
  return Array.from(
    { length: plan.ranks },
    () =>
      new Map(
        plan.buckets.flatMap(({ tensors }) =>
          tensors.map(({ name, elements }) => [
            name,
            Float32Array.from({ length: elements }, () => next() * scale),
          ]),
        ),
      ),
  )
}

/** The exact mean over ranks. */
export function meanOf(gradients: readonly Map<string, Float32Array>[], name: string): Float64Array {
  const mean = new Float64Array(gradients[0]!.get(name)!.length)
  for (const rank of gradients) for (const [index, value] of rank.get(name)!.entries()) mean[index]! += value
  return mean.map((sum) => sum / gradients.length)
}
