import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'

/** No channel binding to TLS. */
const HEADER = 'n,,'

/** One password proof by SCRAM-SHA-256 (RFC 5802, 7677), in its three steps. */
export class Scram {
  readonly #password: string
  readonly #nonce = randomBytes(18).toString('base64')
  readonly #first = `n=*,r=${this.#nonce}` // PostgreSQL knows the user from the startup message
  #serverSignature = ''
  #isFinished = false

  constructor(password: string) {
    this.#password = password.normalize('NFKC')
  }

  begin(): string {
    return HEADER + this.#first
  }

  /** Answers the server's salt with the proof. Throws if the server's nonce does not continue this exchange. */
  prove(challenge: string): string {
    const [, nonce = '', salt = '', rounds = ''] = /^r=([^,]+),s=([^,]+),i=(\d+)/.exec(challenge) ?? []
    if (!nonce.startsWith(this.#nonce) || nonce === this.#nonce)
      throw new Error('SCRAM: unexpected challenge')
    const salted = pbkdf2Sync(this.#password, Buffer.from(salt, 'base64'), Number(rounds), 32, 'sha256')
    const unproven = `c=${Buffer.from(HEADER).toString('base64')},r=${nonce}`
    const exchange = `${this.#first},${challenge},${unproven}`
    const clientKey = sign(salted, 'Client Key')
    const signature = sign(createHash('sha256').update(clientKey).digest(), exchange)
    this.#serverSignature = sign(sign(salted, 'Server Key'), exchange).toString('base64')
    const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index]!))
    return `${unproven},p=${proof.toString('base64')}`
  }

  /** Throws unless the server knows the password, too. */
  finish(answer: string): void {
    this.#isFinished = this.#serverSignature !== '' && answer === `v=${this.#serverSignature}`
    this.requireFinished()
  }

  /**
   * Throws unless the server has proven itself: a server that accepts any client must not pass for the intended one.
   */
  requireFinished(): void {
    if (!this.#isFinished) throw new Error('SCRAM: the server did not prove itself')
  }
}

function sign(key: Buffer, message: string): Buffer {
  return createHmac('sha256', key).update(message).digest()
}
