import type { GatewayCount } from './gateway-counts.js'
import type { GatewayOptions } from './gateway-options.js'

/** The data that a thread's module starts with. */
export interface GatewayThreadData {
  /** The path given to `--config`. */
  readonly configPath: string | undefined
  readonly options: Pick<
    GatewayOptions,
    'listen' | 'declared' | 'keepMs' | 'names' | 'ranges' | 'tokens' | 'users' | 'rules'
  >
}

/** A message from a thread. */
export type GatewayThreadReply = { readonly counts: readonly GatewayCount[] } | { readonly note: string }
