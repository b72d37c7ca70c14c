import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Pins } from './located.js'

/** A client of the gateway that waits for an answer. */
export interface GatewayClient {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly pins: Pins
  /** Makes a signal that aborts when the client or the gateway goes. */
  readonly untilGone: () => AbortSignal
}
