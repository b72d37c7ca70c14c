/**
 * `dsc/exchange`: averages gradients between Node processes. Ranks meet at a rendezvous (`dsc exchange serve`, or
 * `openRendezvous` in your own program), and exchange according to a plan from `dsc exchange plan`.
 */
export type { Mode } from '../exchange/connect-links.js'
export { ExchangeMismatch, LinkLost, PeerLost, type Place } from '../exchange/failures.js'
export { type ExchangeSession, type JoinOptions, joinExchange } from '../exchange/join-exchange.js'
export type { ScaleState } from '../exchange/plan/scale.js'
export type { Patience } from '../exchange/plan/suspect.js'
export { type PlanFile, readPlan } from '../exchange/plan-files.js'
export type { Suspect } from '../exchange/rendezvous/join-rendezvous.js'
export { openRendezvous, type Rendezvous } from '../exchange/rendezvous/open-rendezvous.js'
export type { ExchangeStep, StepReport } from '../exchange/step.js'
