import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { interrupted } from '../../cache/prepare/interrupted.js'
import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import type { FailureAnswer } from '../../failure/failure-answer.js'
import { FAILURES, type FailureCode } from '../../failure/failure-table.js'
import { readJsonLines } from '../../frames/lines.js'
import { askOnce } from '../../http/ask-once.js'
import { pause } from '../../platform/poll.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { findOtherMaker } from './door-place.js'
import { findDoorFault } from './door-socket.js'
import { type DoorGreeting, type DoorLine, pathOfOperation } from './door-wire.js'

/** How long a service may be away, because it is restarted or upgraded, ms. */
const PATIENCE_MS = 60_000
const ASK_AGAIN_MS = 200
/** How long a service may be silent before the call counts as lost, ms. It writes something at least every 2 s. */
const SILENCE_MS = 15_000
const CONNECT_TIMEOUT_MS = 5000
/** Codes of a service that is restarting, or has no place for another connection at the moment. */
const AWAY = new Set([
  ...['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAGAIN'],
  ...['NO_CONNECTION', 'SILENT', 'CUT_OFF'],
])

/** Callbacks for an operation that runs. */
export interface AskOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: (progress: PrepareProgress) => void
  /** Finds new keys of this user's when those that were handed over expire. */
  readonly findAccess?: (() => Promise<HandedAccess | undefined>) | undefined
}

interface Tell {
  readonly onAway: (sentence: string) => void
  /** Stops every call. */
  readonly signal?: AbortSignal | undefined
  /** How long to wait for a service that is away, ms. Default: a minute. */
  readonly patienceMs?: number | undefined
}

/** Asks the service of this node, at its door. The kernel tells the service who asks. */
export class DoorClient {
  readonly path: string
  readonly #tell: Tell

  constructor(path: string, tell: Tell) {
    this.path = path
    this.#tell = tell
  }

  greet(): Promise<DoorGreeting> {
    return this.ask<DoorGreeting>('greet', {})
  }

  /** Resolves with the result of an operation. Rejects with its failure, as if it had happened here. */
  async ask<Result>(operation: string, input: object, options: AskOptions = {}): Promise<Result> {
    return (await this.#askPatiently(operation, input, options)).result as Result
  }

  /** The same for an operation whose answer is a list. */
  async list<Item>(operation: string, input: object): Promise<readonly Item[]> {
    return (await this.#askPatiently(operation, input, {})).items as Item[]
  }

  /**
   * Every operation may be repeated: the same user and task get the same lease. Credentials are sent only where nobody
   * but the owner of the service can listen, which is checked each time.
   */
  async #askPatiently(operation: string, input: object, options: AskOptions): Promise<Answered> {
    const { onAway, patienceMs = PATIENCE_MS, signal: stopping } = this.#tell
    // A command that was stopped gives its leases back, to a service that is there.
    const isAfterStop = options.signal === undefined && stopping?.aborted === true
    const signal = isAfterStop ? undefined : (options.signal ?? stopping)
    let awaySinceMs: number | undefined
    const heard = () => {
      awaySinceMs = undefined
    }
    for (;;) {
      const hasKeys = 'own' in input && input.own !== undefined
      const fault = findDoorFault(this.path) ?? (hasKeys ? findOtherMaker(this.path) : undefined)
      if (fault !== undefined)
        throw new DscError('SERVICE_UNREACHABLE', `the door of the service cannot be trusted: ${fault}`, {
          hint: 'ask the owner of the service to give the socket a folder of its own',
        })
      try {
        return await this.#askNow(operation, input, { ...options, signal, heard })
      } catch (error) {
        if (signal?.aborted) throw interrupted(signal)
        if (isAfterStop && !(error instanceof DscError)) throw interrupted(stopping)
        const isFull = isDscError(error, 'TOO_MANY_REQUESTS')
        if ((error instanceof DscError && !isFull) || error instanceof ServiceDefect) throw error
        const nowMs = performance.now()
        if (awaySinceMs === undefined && !isFull)
          onAway(`the service at ${this.path} does not answer; waiting for it`)
        awaySinceMs ??= nowMs
        const isOver = nowMs - awaySinceMs > patienceMs
        if (isFull && isOver) throw error
        if (!isFull && (isOver || !isAway(error))) throw this.#unreachable(error)
      }
      // Hundreds of tasks that begin at once must not ask again at once.
      await pause(ASK_AGAIN_MS * (0.5 + Math.random()), signal)
    }
  }

  /** Calls `heard` with every line, for a service that answers is not away. */
  async #askNow(
    operation: string,
    input: object,
    options: AskOptions & { readonly heard: () => void },
  ): Promise<Answered> {
    let answer: IncomingMessage | undefined
    try {
      answer = await askOnce(`http://localhost${pathOfOperation(operation)}`, {
        method: 'POST',
        socketPath: this.path,
        token: undefined,
        ca: undefined,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(input),
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        silenceMs: SILENCE_MS,
        signal: options.signal,
      })
      if (answer.statusCode !== 200) throw await this.#refused(answer)
      const items: unknown[] = []
      for await (const line of readJsonLines(answer, parseDoorLine)) {
        options.heard()
        if ('progress' in line) options.onProgress?.(line.progress)
        else if ('item' in line) items.push(line.item)
        else if ('need' in line) await this.#giveAccess(line.call, options)
        else if ('error' in line) throw failureOf(line.error)
        else return { result: line.result, items }
      }
      throw new CutOff()
    } finally {
      answer?.destroy()
    }
  }

  /** Without new keys the service says that the old ones have expired. */
  async #giveAccess(call: string, { findAccess, signal }: AskOptions): Promise<void> {
    await this.ask('giveAccess', { call, own: await findAccess?.() }, { signal })
  }

  async #refused(answer: IncomingMessage): Promise<Error> {
    const body = (await text(answer)).slice(0, 10_000)
    const { statusCode } = answer
    try {
      const { error } = JSON.parse(body) as { error: FailureAnswer }
      if (error.code !== undefined) return failureOf(error)
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error
    }
    return new DscError(
      'SERVICE_UNREACHABLE',
      `the service at ${this.path} answers ${statusCode}: ${body.slice(0, 200)}`,
      { hint: 'dsc --version, and the version of the service, should be the same' },
    )
  }

  #unreachable(cause: unknown): DscError {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return new DscError('SERVICE_UNREACHABLE', `the service at ${this.path} does not answer: ${reason}`, {
      hint: 'ask its owner to start it (systemctl start dsc-agent), or set DSC_DOOR=none to use a cache of your own',
      cause,
    })
  }
}

interface Answered {
  readonly result: unknown
  readonly items: readonly unknown[]
}

/** The service ended its answer in the middle: it was stopped. */
class CutOff extends Error {
  readonly code = 'CUT_OFF'

  constructor() {
    super('it ended its answer in the middle')
  }
}

/** A defect of dsc that the service met: to be reported, as one in this process. */
class ServiceDefect extends Error {
  override readonly name = 'ServiceDefect'
}

function isAway(error: unknown): boolean {
  return AWAY.has((error as NodeJS.ErrnoException).code ?? '')
}

function parseDoorLine(raw: unknown): DoorLine {
  if (typeof raw === 'object' && raw !== null) return raw as DoorLine
  throw new TypeError('expected an object')
}

function failureOf({ code: said, message, hint, id }: FailureAnswer): Error {
  if (Object.hasOwn(FAILURES, said)) return new DscError(said as FailureCode, message, { hint, id })
  const told = `the service failed: ${message}`
  if (said === 'INTERNAL') return new ServiceDefect(told)
  return new DscError('SERVICE_UNREACHABLE', told, { hint, id }) // a newer version knows more codes
}
