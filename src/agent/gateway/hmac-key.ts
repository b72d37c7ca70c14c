import { hash } from 'node:crypto'

/** Bytes that SHA-256 takes at a time. */
const BLOCK_BYTES = 64

/**
 * A key of HMAC-SHA-256 (RFC 2104) that digests many short texts. `createHmac` makes a stream and a key object for
 * each of them, which takes ten times as long as the digest; this calls the hash twice.
 */
export class HmacKey {
  readonly #inner: Buffer
  readonly #outer: Buffer

  constructor(key: Buffer) {
    const block = Buffer.alloc(BLOCK_BYTES)
    const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key
    short.copy(block)
    this.#inner = Buffer.from(block.map((byte) => byte ^ 0x36))
    this.#outer = Buffer.from(block.map((byte) => byte ^ 0x5c))
  }

  digest(text: string): Buffer {
    const inner = hash('sha256', Buffer.concat([this.#inner, Buffer.from(text)]), 'buffer')
    return hash('sha256', Buffer.concat([this.#outer, inner]), 'buffer')
  }
}
