import type { Duplex } from 'node:stream'
import { DscError, describeFailure, type KnownFailure } from '../../failure/dsc-error.js'
import { explainSystemError } from '../../failure/system-failure.js'
import { listenForLines, sendLine } from '../../frames/lines.js'
import { type MountEntry, readMountTable } from '../../platform/mount-table.js'
import type { Mounter } from './mounter.js'

/** An order of the agent to the mounter. Several may be under way at once. */
type Order =
  | { readonly id: number; readonly verb: 'mount'; readonly source: string; readonly target: string }
  | { readonly id: number; readonly verb: 'unmount'; readonly target: string }

/** The first message of the mounter, which sends it unasked: it takes orders from now on. */
const READY = 0

/** The mounter's answer: `error` is a failure, `defect` a mistake of dsc. Without either, the order is carried out. */
interface Done {
  readonly id: number
  readonly error?: KnownFailure
  readonly defect?: string
}

/** The mounter's end of the link: carries out orders until the agent is gone. */
export async function serveMounts(link: Duplex, mounter: Mounter): Promise<void> {
  const carryOut = async (order: Order) => {
    try {
      await (order.verb === 'mount'
        ? mounter.mount(order.source, order.target)
        : mounter.unmount(order.target))
      sendLine(link, { id: order.id } satisfies Done)
    } catch (error) {
      sendLine(link, { id: order.id, ...describe(error) } satisfies Done)
    }
  }
  listenForLines(link, {
    parse: parseOrder,
    onMessage(order) {
      void carryOut(order)
      return undefined
    },
  })
  sendLine(link, { id: READY } satisfies Done)
  await new Promise((resolve) => link.on('close', resolve).on('end', resolve).on('error', resolve))
}

/** The agent's end of the link. `onGone` is called when the mounter is. */
export class LinkedMounter implements Mounter {
  readonly #link: Duplex
  readonly #waiting = new Map<number, PromiseWithResolvers<void>>()
  #lastId = READY

  private constructor(link: Duplex, onGone: () => void) {
    this.#link = link
    listenForLines(link, {
      parse: (raw) => raw as Done,
      onMessage: ({ id, error, defect }) => {
        const waiting = this.#waiting.get(id)
        this.#waiting.delete(id)
        if (error) waiting?.reject(new DscError(error.code, error.message, { hint: error.hint }))
        else if (defect !== undefined) waiting?.reject(new Error(defect))
        else waiting?.resolve()
        return undefined
      },
    })
    link.on('error', () => {}) // `close` follows
    link.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(mounterGone())
      onGone()
    })
  }

  /** Waits until the mounter takes orders. Rejects with INTERRUPTED if it ends before. */
  static async open(link: Duplex, onGone: () => void): Promise<LinkedMounter> {
    const mounter = new LinkedMounter(link, onGone)
    await mounter.#await(READY)
    return mounter
  }

  list(): readonly MountEntry[] {
    return readMountTable()
  }

  mount(source: string, target: string): Promise<void> {
    return this.#order({ verb: 'mount', source, target })
  }

  unmount(target: string): Promise<void> {
    return this.#order({ verb: 'unmount', target })
  }

  #order(order: { readonly verb: Order['verb']; readonly source?: string; readonly target: string }) {
    this.#lastId += 1
    const done = this.#await(this.#lastId)
    sendLine(this.#link, { id: this.#lastId, ...order })
    return done
  }

  #await(id: number): Promise<void> {
    const waiting = Promise.withResolvers<void>()
    if (this.#link.destroyed) waiting.reject(mounterGone())
    else this.#waiting.set(id, waiting)
    return waiting.promise
  }
}

function mounterGone(): DscError {
  return new DscError('INTERRUPTED', 'the process that mounts has ended')
}

/** Throws for anything but an order: the agent at the other end may be compromised. */
function parseOrder(raw: unknown): Order {
  const { id, verb, source, target } = (raw ?? {}) as Partial<
    Record<'id' | 'verb' | 'source' | 'target', unknown>
  >
  if (typeof id === 'number' && typeof target === 'string') {
    if (verb === 'unmount') return { id, verb, target }
    if (verb === 'mount' && typeof source === 'string') return { id, verb, source, target }
  }
  throw new RangeError('expected an order to mount or unmount')
}

function describe(error: unknown): Omit<Done, 'id'> {
  const failure = explainSystemError(error)
  return failure ? { error: describeFailure(failure) } : { defect: String(error) }
}
