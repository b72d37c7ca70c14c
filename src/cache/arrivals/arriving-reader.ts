import { Manifest } from '../../manifest/manifest.js'
import { isOfSqlite } from '../../manifest/manifest-file.js'
import type { Copy } from '../../model/copy.js'
import { LOOK_MS, pause } from '../../platform/poll.js'
import { ArrivalClient, type ArrivalReader } from './arrival-client.js'
import type { Asked } from './arrival-wire.js'
import type { WaitTurn } from './due-waits.js'

/**
 * How long a stager may be silent before the manifest is checked, in ms: it may have stopped, and another taken over.
 */
const PATIENCE_MS = 10_000

/** Result of a wait for an arriving object. `gone`: its copy was published or given up; look at the record again. */
export type ArrivalOutcome = 'there' | 'unknown' | 'gone'

/** Result of a look at the manifest. */
type Look = ArrivalOutcome | 'coming'

/** Reads arriving copies of this node, over one connection to each stager that all waits share. */
export class ArrivingReader {
  readonly #clients = new Map<string, Promise<ArrivalClient | undefined>>()
  readonly #looks = new Map<string, { readonly keys: Map<string, Look>; readonly done: Promise<void> }>()
  /** Orders for each copy, to repeat to a stager that takes over. */
  readonly #orders = new Map<string, Asked[]>()
  readonly #self: ArrivalReader
  #isClosed = false

  /** `name`: what a status calls this reader; `onSpoilt`: as in `ArrivalReader`. */
  constructor(name: string, onSpoilt?: ArrivalReader['onSpoilt']) {
    this.#self = { name, onSpoilt }
  }

  /** Announces what will be used of a copy next, in that order; adds to earlier announcements. */
  async order(copy: Pick<Copy, 'directory'>, asked: readonly Asked[]): Promise<void> {
    const { directory } = copy
    const client = await this.#clientOf(directory)
    const ordered = this.#orders.get(directory) ?? []
    for (const each of asked) ordered.push(each)
    this.#orders.set(directory, ordered)
    client?.order(asked)
  }

  /**
   * Waits until an object is written and verified, or a range of one is written. It asks the stager before the
   * manifest, which knows only whole objects. The stager fetches it next; with `turn`, once that is due.
   */
  async awaitAsked(
    copy: Pick<Copy, 'directory'>,
    asked: Asked,
    { signal, turn }: { readonly signal: AbortSignal; readonly turn?: WaitTurn | undefined },
  ): Promise<ArrivalOutcome> {
    const key = typeof asked === 'string' ? asked : asked[0]
    while (!this.#isClosed) {
      const client = await this.#clientOf(copy.directory)
      const urgency = turn?.isDue === false ? 'ordered' : 'wanted'
      if (urgency === 'ordered') void turn?.comesDue.then(() => client?.want(asked, { signal }))
      const arrival = client && (await client.want(asked, { urgency, signal, patienceMs: PATIENCE_MS }))
      if (arrival === 'there' || arrival === 'unknown') return arrival
      signal.throwIfAborted()
      const outcome = await this.#lookTogether(copy.directory, key)
      if (outcome !== 'coming') return outcome
    }
    return 'gone'
  }

  /** Looks at the manifest a moment later; all waits in that moment share one opening of it. */
  async #lookTogether(directory: string, key: string): Promise<Look> {
    const known = this.#looks.get(directory)
    const look = known ?? {
      keys: new Map(),
      done: pause(LOOK_MS.progress).then(() => this.#lookForAll(directory)),
    }
    this.#looks.set(directory, look)
    look.keys.set(key, 'gone')
    await look.done
    return look.keys.get(key)!
  }

  #lookForAll(directory: string): void {
    const { keys } = this.#looks.get(directory)!
    this.#looks.delete(directory)
    using manifest = this.#isClosed ? undefined : Manifest.findPublished(directory)
    if (manifest === undefined) return
    try {
      for (const key of keys.keys()) keys.set(key, findIn(manifest, key))
    } catch (error) {
      // On a full disk SQLite cannot read what a stager is writing: the staging is about to end.
      if (!isOfSqlite(error)) throw error
      for (const key of keys.keys()) keys.set(key, 'gone')
    }
  }

  close(): void {
    this.#isClosed = true
    for (const opened of this.#clients.values()) void opened.then((client) => client?.close())
    this.#clients.clear()
  }

  async #clientOf(directory: string): Promise<ArrivalClient | undefined> {
    const known = this.#clients.get(directory)
    const client = await known
    if (client?.isOpen) return client
    // Another wait for the same dead connection may have opened a new one: share it.
    const again = this.#clients.get(directory)
    if (again !== known && again !== undefined) return again
    const opened = ArrivalClient.open(directory, this.#self)
    this.#clients.set(directory, opened)
    const fresh = await opened
    if (fresh === undefined) this.#clients.delete(directory)
    else fresh.order(this.#orders.get(directory) ?? [])
    return fresh
  }
}

function findIn(manifest: Manifest, key: string): Look {
  const entry = manifest.find(key)
  if (entry === undefined || entry.state === 'elsewhere') return 'unknown'
  return entry.state === 'present' ? 'there' : 'coming'
}
