import { DscError } from '../failure/dsc-error.js'

/** A rank's last known place in the exchange. */
export interface Place {
  readonly step: number
  /** Undefined between steps. */
  readonly bucket: number | undefined
  readonly phase: string | undefined
}

/** A rank is gone. Raised by every survivor; the gradients of the current step are unchanged. */
export class PeerLost extends DscError {
  readonly rank: number
  readonly host: string
  readonly place: Place

  constructor(lost: {
    readonly rank: number
    readonly host: string
    readonly place: Place
    readonly reason: string
  }) {
    const { rank, host, place, reason } = lost
    super('PEER_LOST', `rank ${rank} on ${host} is lost at ${formatPlace(place)}: ${reason}`, {
      hint: 'join again with one rank less to repeat the step, or restart from a checkpoint',
    })
    this.name = 'PeerLost'
    this.rank = rank
    this.host = host
    this.place = place
  }
}

/** The connection between two ranks broke while both are alive. Raised on every rank, including those two. */
export class LinkLost extends DscError {
  /** Ascending. */
  readonly ranks: readonly [number, number]
  readonly hosts: readonly [string, string]
  readonly place: Place

  constructor(lost: {
    readonly ranks: readonly [number, number]
    readonly hosts: readonly [string, string]
    readonly place: Place
  }) {
    const { ranks, hosts, place } = lost
    const ends = `link ${ranks.join('–')} between ${hosts.join(' and ')}`
    super('PEER_LOST', `${ends} is lost at ${formatPlace(place)}: its connection broke, both ranks live`, {
      hint: 'join again with all ranks to repeat the step; if it comes back, check the network between the two hosts',
    })
    this.name = 'LinkLost'
    this.ranks = ranks
    this.hosts = hosts
    this.place = place
  }
}

function formatPlace({ step, bucket, phase }: Place): string {
  return [`step ${step}`, bucket === undefined ? [] : `bucket ${bucket}`, phase ?? []].flat().join(', ')
}

/** Two ranks disagree on what they are exchanging. The message names both. */
export class ExchangeMismatch extends DscError {
  constructor(message: string) {
    super('EXCHANGE_MISMATCH', message, {
      hint: 'give every rank the same plan, rank count and number of steps',
    })
    this.name = 'ExchangeMismatch'
  }
}
