import { ArrivalClient } from '../../cache/arrivals/arrival-client.js'

/** The name by which a status shows clients of agents. */
const READER = { name: 'other nodes' }

/** Connections to the stagers of this node's downloads, by folder. Closed connections are dropped. */
export class StagerConnections {
  readonly #opened = new Map<string, Promise<ArrivalClient | undefined>>()

  /** Number of kept connections. */
  get size(): number {
    return this.#opened.size
  }

  /** Connects to the stager in the folder; undefined if no stager answers this user. */
  async find(directory: string): Promise<ArrivalClient | undefined> {
    const known = this.#opened.get(directory)
    const client = await known
    if (client?.isOpen) return client
    // Callers that met the same dead connection share the new one.
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

/** Undefined if the folder cannot be opened, even for lack of file descriptors: nobody can be asked just now. */
async function openClient(directory: string): Promise<ArrivalClient | undefined> {
  try {
    return await ArrivalClient.open(directory, READER)
  } catch {
    return undefined
  }
}
