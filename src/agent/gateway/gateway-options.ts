import type { Cache } from '../../cache/cache.js'
import type { Dataset } from '../../model/dataset.js'
import type { HostPort } from '../../model/host-port.js'
import type { RightRules } from '../../policy/rights.js'
import type { AgentTokens } from '../server/authorize.js'
import type { LocalUsers } from '../server/local-users.js'
import type { RangesTaken } from './arriving-ranges.js'
import type { GatewayCount } from './gateway-counts.js'

/** Which datasets the S3 gateway of a node serves, to which clients, and how long it holds copies after a read. */
export interface GatewayOptions {
  readonly cache: Cache
  readonly listen: HostPort
  /** Datasets in dsc.yaml; those in the record are served, too. */
  readonly declared: readonly Dataset[]
  /** How long a copy is held after the last read, in ms. */
  readonly keepMs: number
  /** When to answer ranges of objects that are still downloading. */
  readonly ranges: RangesTaken
  /** Tokens from which keys are derived; undefined: no signed request is accepted. */
  readonly tokens: AgentTokens | undefined
  /** Local users whose unsigned loopback requests are answered, by uid; `all`: any user of this machine. */
  readonly users: LocalUsers
  /** Rights of the service's user and of admins, who read every dataset. */
  readonly rules: RightRules
  /** Host names, or URLs of them, under which clients reach the gateway, besides `localhost` and IP addresses. */
  readonly names: readonly string[]
  /** Whether other threads listen there, too: the kernel distributes connections among them. */
  readonly isShared: boolean
  readonly onCounts: (counts: readonly GatewayCount[]) => void
  readonly note: (sentence: string) => void
}
