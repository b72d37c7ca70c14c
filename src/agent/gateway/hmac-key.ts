import { hash } from 'node:crypto'

/** Block size of SHA-256, in bytes. */
const BLOCK_BYTES = 64

/**
 * An HMAC-SHA-256 key (RFC 2104) for digesting many short texts. `createHmac` creates a stream and a key object for
 * each text, which takes ten times as long as the digest; this class calls the hash twice.
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
