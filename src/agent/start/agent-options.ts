import type { Cache } from '../../cache/cache.js'
import type { HostPort } from '../../model/host-port.js'
import type { RightRules } from '../../policy/rights.js'
import type { AgentAccess } from '../calls/agent-client.js'
import type { CsiSettings } from '../csi/open-csi.js'
import type { GatewayOptions } from '../gateway/gateway-options.js'
import type { AgentTokens } from '../server/authorize.js'

/** The gateway's settings that the user chooses; the agent knows the rest. */
export type GatewaySettings = Pick<
  GatewayOptions,
  'listen' | 'declared' | 'keepMs' | 'names' | 'ranges' | 'users' | 'rules'
>

/** The door's settings. */
export interface DoorSettings {
  readonly path: string
  readonly rules: RightRules
  /** Credentials for agents of other nodes. */
  readonly access: AgentAccess
  readonly undeclaredBytesPerUser: number
  /** False: an agent that cannot open it there goes on without. */
  readonly isRequired: boolean
}

/** Everything that an agent needs to start. */
export interface AgentOptions {
  readonly cache: Cache
  readonly listen: HostPort
  readonly advertise: string | undefined
  readonly hostName: string
  /** The version of dsc. */
  readonly version: string
  /** The path given to `--config`: threads read the file again. */
  readonly configPath: string | undefined
  readonly tokens: AgentTokens | undefined
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly forgetNodesAfterMs: number | undefined
  readonly gateway: GatewaySettings | undefined
  /** Absent: the agent mounts nothing into pods. */
  readonly csi?: CsiSettings | undefined
  /** Where everybody on this machine may ask, and who there may do everything. Default: nowhere. */
  readonly door?: DoorSettings | undefined
  /** Whether it cleans up the cache. Default: its users do. */
  readonly cleansUp?: boolean
  /** Whether other machines may look at the page. Default: only this machine. */
  readonly isPageEverywhere?: boolean
  readonly note: (sentence: string) => void
}
