import { ArrivalClient } from '../../cache/arrivals/arrival-client.js'

/** What a status calls those who ask agents. */
const READER = { name: 'other nodes' }

/** Connections to the stagers of this node's arriving copies, by folder. Of one that has ended nothing is kept. */
export class StagerConnections {
  readonly #opened = new Map<string, Promise<ArrivalClient | undefined>>()

  /** How many are kept. */
  get size(): number {
    return this.#opened.size
  }

  /** The connection to whoever stages in the folder; undefined where nobody does, or nobody whom this user may ask. */
  async find(directory: string): Promise<ArrivalClient | undefined> {
    const known = this.#opened.get(directory)
    const client = await known
    if (client?.isOpen) return client
    // Whoever met the same dead connection shares the new one.
    if (this.#opened.get(directory) === known) this.#open(directory)
    return this.#opened.get(directory)
  }

  forget(directory: string): void {
    this.#opened.delete(directory)
  }

  close(): void {
    for (const opened of this.#opened.values()) void opened.then((client) => client?.close())
    this.#opened.clear()
  }

  #open(directory: string): void {
    const opened = openClient(directory)
    this.#opened.set(directory, opened)
    const forget = () => {
      if (this.#opened.get(directory) === opened) this.#opened.delete(directory)
    }
    void opened.then((client) => (client ? client.ended.then(forget) : forget()))
  }
}

/** A folder that cannot be opened, be it for want of descriptors, has nobody to ask just now. */
async function openClient(directory: string): Promise<ArrivalClient | undefined> {
  try {
    return await ArrivalClient.open(directory, READER)
  } catch {
    return undefined
  }
}
