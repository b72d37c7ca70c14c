/** Receives the answer to one request. The last call is exactly one of `onEnd` and `onError`. */
export interface AnswerListener {
  onHead(status: number, headers: Headers): void
  /** `chunk` is valid only during the call: its memory is reused for the next bytes. */
  onData(chunk: Uint8Array): void
  /** Memory for the next bytes, until they come or the answer ends. Absent or undefined: any. */
  findRoom?(): Buffer | undefined
  onEnd(): void
  onError(error: Error): void
}

/** Header values by lower-case name; values of a repeated name are joined by `, `. */
export type Headers = Readonly<Record<string, string>>
