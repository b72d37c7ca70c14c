type HttpFailureCode =
  | 'HTTP_STALLED'
  | 'HTTP_CLOSED'
  | 'HTTP_MALFORMED'
  | 'HTTP_CONNECT_TIMEOUT'
  | 'HTTP_PROXY_REFUSED'

/** A connection failure without an operating system code. */
export class HttpFailure extends Error {
  readonly code: HttpFailureCode

  constructor(code: HttpFailureCode, message: string) {
    super(message)
    this.code = code
  }
}
