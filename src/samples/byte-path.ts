/**
 * A name or path of a file system as a string with one character per byte (latin1), for names are bytes and need not
 * be UTF-8. Such strings compare as their bytes do.
 */
export type BytePath = string

/** The path as the file system takes it. */
export function toBytes(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1')
}

/** A path from the bytes that the file system gave. */
export function fromBytes(bytes: Uint8Array): BytePath {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

/** For people; what is not UTF-8 shows as U+FFFD. */
export function toText(path: BytePath): string {
  return toBytes(path).toString()
}

/** A path from what a user wrote. */
export function fromText(text: string): BytePath {
  return Buffer.from(text).toString('latin1')
}
