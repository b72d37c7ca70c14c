import { DscError } from '../failure/dsc-error.js'

/** Where in the exchange a rank was when it was last heard of. */
export interface Place {
  readonly step: number
  /** Undefined between steps. */
  readonly bucket: number | undefined
  readonly phase: string | undefined
}

/** A rank is gone. Raised by every survivor; gradients of the current step are as the caller handed them over. */
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
    const bucket = place.bucket === undefined ? '' : `, bucket ${place.bucket}`
    const phase = place.phase === undefined ? '' : `, ${place.phase}`
    super('PEER_LOST', `rank ${rank} on ${host} is lost at step ${place.step}${bucket}${phase}: ${reason}`, {
      hint: 'join again with one rank less to repeat the step, or restart from a checkpoint',
    })
    this.name = 'PeerLost'
    this.rank = rank
    this.host = host
    this.place = place
  }
}

/** Two ranks are not doing the same thing. The message names both. */
export class ExchangeMismatch extends DscError {
  constructor(message: string) {
    super('EXCHANGE_MISMATCH', message, {
      hint: 'give every rank the same plan, rank count and number of steps',
    })
    this.name = 'ExchangeMismatch'
  }
}
