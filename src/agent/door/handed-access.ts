import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { type HandedAccess, isHeaderText, type OwnAccess } from '../../sources/own-access.js'
import { flag, whole } from '../calls/fields.js'

/** How long a client may take to find new keys, ms: its user's chain may ask a process, or STS. */
const PATIENCE_MS = 60_000

/**
 * Asks the clients that wait at the door for new keys when those that they handed over expire. What was handed over is
 * nowhere but in the request that needs it: it is gone when that ends.
 */
export class HandedAccesses {
  readonly #waiting = new Map<
    string,
    { readonly uid: number; readonly take: (access: HandedAccess | undefined) => void }
  >()

  /** Asks one client by a line of its answer. Rejects with SOURCE_DENIED if it does not answer. */
  async ask(
    write: (line: object) => void,
    { uid, signal }: { readonly uid: number; readonly signal: AbortSignal },
  ): Promise<HandedAccess> {
    throwIfStopped(signal)
    const call = randomUUID()
    const { promise, resolve, reject } = Promise.withResolvers<HandedAccess | undefined>()
    const timer = setTimeout(() => reject(expired('their dsc handed over no new ones')), PATIENCE_MS)
    const stop = () => reject(expired('their dsc is gone'))
    signal.addEventListener('abort', stop, { once: true })
    this.#waiting.set(call, { uid, take: resolve })
    write({ need: 'access', call })
    try {
      const access = await promise
      if (access) return access
      throw expired('their dsc finds no new ones')
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      this.#waiting.delete(call)
    }
  }

  /** Takes the answer of a client. Does nothing for a call that is over, or of another user. */
  give(
    call: string,
    { uid, access }: { readonly uid: number; readonly access: HandedAccess | undefined },
  ): void {
    const waiting = this.#waiting.get(call)
    if (waiting?.uid === uid) waiting.take(access)
  }
}

/** Makes handed-over access usable; `askAgain` asks the client for keys in the place of expired ones. */
export function keepAccess(first: HandedAccess, askAgain: () => Promise<HandedAccess>): OwnAccess {
  if (first.scheme === 'hf') return first
  const { keys: _, ...place } = first
  let keys: typeof first.keys | undefined = first.keys
  const getKeys = async () => {
    const known = keys
    keys = undefined // a second call means that they expire
    if (known && !isExpired(known)) return known
    const again = await askAgain()
    // Only keys may change: the place was judged.
    if (again.scheme === 's3' && !isExpired(again.keys)) return again.keys
    throw expired('those that their dsc handed over have expired, too')
  }
  return { ...place, getKeys }
}

function isExpired({
  expiresAtMs = Number.POSITIVE_INFINITY,
}: {
  readonly expiresAtMs?: number | undefined
}) {
  return expiresAtMs <= Date.now()
}

function expired(why: string): DscError {
  return new DscError('SOURCE_DENIED', `the credentials of this user have expired, and ${why}`, {
    hint: 'log in again (aws sso login), then rerun dsc prepare: it continues where it stopped',
  })
}

/** A text that may become a header. A refusal does not show it. */
const secret = z
  .string('expected printable ASCII characters')
  .refine(isHeaderText, 'expected printable ASCII characters')

/** The input of a client that hands over access. */
export const handedAccess = z.discriminatedUnion(
  'scheme',
  [
    z.object({ scheme: z.literal('hf'), endpoint: secret, token: secret }),
    z.object({
      scheme: z.literal('s3'),
      endpoint: secret.optional(),
      region: secret.optional(),
      isPathStyle: flag.default(false),
      keys: z.object({
        accessKeyId: secret,
        secretAccessKey: secret,
        sessionToken: secret.optional(),
        expiresAtMs: whole.optional(),
      }),
    }),
  ],
  'expected access with the scheme s3 or hf',
)
