import { pause } from '../../platform/poll.js'
import type { ApiServer } from '../csi/api-server.js'

/** The API server ends a watch after this time, in s, and the next one goes on where it ended. */
const WATCH_S = 60
const RETRY_MS = 2000
/** The status of a version that is too old. */
const GONE = 410
/** Most characters that a note says about an object that cannot be read. */
const MAX_FAULT = 300

interface RawObject {
  readonly metadata: {
    readonly uid: string
    readonly namespace?: string
    readonly name?: string
    readonly resourceVersion?: string
  }
}

interface RawList {
  readonly metadata: { readonly resourceVersion: string }
  readonly items: readonly RawObject[]
}

interface RawEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: RawObject & { readonly code?: number }
}

interface WatchMeans<T> {
  readonly api: Pick<ApiServer, 'get' | 'watch'>
  /** `/api/v1/pods` */
  readonly path: string
  /** `fieldSelector=…`, or nothing. */
  readonly query?: string | undefined
  /** Undefined: an object that nobody asks for. */
  readonly parse: (raw: unknown) => T | undefined
  readonly onChange: () => void
  readonly note: (sentence: string) => void
}

/** The objects of one kind in the cluster, as far as this process needs them: listed once, then kept by a watch. */
export class WatchedObjects<T> {
  readonly #means: WatchMeans<T>
  readonly #objects = new Map<string, T>()
  /** Uids of objects that `parse` does not understand. */
  readonly #unread = new Set<string>()
  #isListed = false

  constructor(means: WatchMeans<T>) {
    this.#means = means
  }

  /** The objects by their uid; undefined until they were listed for the first time. */
  get all(): ReadonlyMap<string, T> | undefined {
    return this.#isListed ? this.#objects : undefined
  }

  /** Follows the objects until the signal aborts. Never rejects: after a failure it lists them again. */
  async follow(stopping: AbortSignal): Promise<void> {
    const { path, note } = this.#means
    let told: string | undefined
    while (!stopping.aborted) {
      try {
        let version: string | undefined = await this.#list()
        told = undefined
        while (version !== undefined && !stopping.aborted) version = await this.#watch(version, stopping)
      } catch (error) {
        const { message } = error as Error
        if (!stopping.aborted && told !== message) note(`watching ${path}: ${message}; listing again`)
        told = message
        await pause(RETRY_MS, stopping)
      }
    }
  }

  async #list(): Promise<string> {
    const { api, path, query = '', onChange } = this.#means
    const { metadata, items } = (await api.get(`${path}?${query}`)) as RawList
    this.#objects.clear()
    this.#unread.clear()
    for (const item of items) this.#keep(item)
    this.#isListed = true
    onChange()
    return metadata.resourceVersion
  }

  /** Follows one watch to its end. Returns the version to go on from; undefined: the server no longer has it. */
  async #watch(from: string, stopping: AbortSignal): Promise<string | undefined> {
    const { api, path, query = '', onChange } = this.#means
    const words = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_S}&resourceVersion=${from}&${query}`
    let version = from
    for await (const raw of api.watch(`${path}?${words}`, stopping)) {
      const { type, object } = raw as RawEvent
      if (type === 'ERROR' && object.code === GONE) return undefined
      if (type === 'ERROR') throw new Error(`the watch ended: ${JSON.stringify(object).slice(0, 200)}`)
      version = object.metadata.resourceVersion ?? version
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') this.#drop(object.metadata.uid)
      else this.#keep(object)
      onChange()
    }
    return version
  }

  /** Keeps one object. One that cannot be read is told of and left out: it must not hide the others. */
  #keep(raw: RawObject): void {
    const { parse, path, note } = this.#means
    const { uid, namespace = '', name = uid } = raw.metadata
    try {
      const parsed = parse(raw)
      this.#unread.delete(uid)
      if (parsed === undefined) this.#objects.delete(uid)
      else this.#objects.set(uid, parsed)
    } catch (error) {
      this.#objects.delete(uid)
      if (!this.#unread.has(uid))
        note(`${path}: leaves out ${namespace}/${name}: ${(error as Error).message.slice(0, MAX_FAULT)}`)
      this.#unread.add(uid)
    }
  }

  #drop(uid: string): void {
    this.#objects.delete(uid)
    this.#unread.delete(uid)
  }
}
