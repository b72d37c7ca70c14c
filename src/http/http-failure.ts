type HttpFailureCode =
  | 'HTTP_STALLED'
  | 'HTTP_CLOSED'
  | 'HTTP_MALFORMED'
  | 'HTTP_CONNECT_TIMEOUT'
  | 'HTTP_PROXY_REFUSED'

/** A connection that failed in a way the operating system has no code for. */
export class HttpFailure extends Error {
  readonly code: HttpFailureCode

  constructor(code: HttpFailureCode, message: string) {
    super(message)
    this.code = code
  }
}
