import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { interrupted } from '../../cache/prepare/interrupted.js'
import type { PrepareProgress } from '../../cache/prepare/prepare-dataset.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import type { FailureAnswer } from '../../failure/failure-answer.js'
import { FAILURES, type FailureCode } from '../../failure/failure-table.js'
import { readJsonLines } from '../../frames/lines.js'
import { askOnce } from '../../http/ask-once.js'
import { findOtherWriters } from '../../platform/other-writers.js'
import { pause } from '../../platform/poll.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { findDoorFault, findReplacer } from './door-socket.js'
import { type DoorGreeting, type DoorLine, pathOfOperation } from './door-wire.js'

/** How long a service may be away, because it is restarted or upgraded, ms. */
const PATIENCE_MS = 60_000
const ASK_AGAIN_MS = 200
/** How long a service may be silent before the call counts as lost, ms. It writes something at least every 2 s. */
const SILENCE_MS = 15_000
const CONNECT_TIMEOUT_MS = 5000
/** Longest line of an answer, bytes: a cleanup or a verification names every file that it is about. */
const MAX_LINE_BYTES = 256 * 1024 * 1024
/** Codes of a service that is restarting, or has no place for another connection at the moment. */
const AWAY = new Set([
  ...['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAGAIN'],
  ...['NO_CONNECTION', 'SILENT', 'CUT_OFF'],
])

/** Callbacks for an operation that runs. */
export interface AskOptions<Progress = PrepareProgress> {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: (progress: Progress) => void
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

  /** Resolves with the result of an operation; undefined for null. Rejects with its failure, as if it had happened here. */
  async ask<Result, Progress = PrepareProgress>(
    operation: string,
    input: object,
    options: AskOptions<Progress> = {},
  ): Promise<Result> {
    return (await this.#askPatiently(operation, input, options as AskOptions<never>)) as Result
  }

  /**
   * Every operation may be repeated: the same user and task get the same lease. Credentials are sent only where nobody
   * but the owner of the service can listen, which is checked each time.
   */
  async #askPatiently(operation: string, input: object, options: AskOptions<never>): Promise<unknown> {
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
      const fault =
        findDoorFault(this.path) ??
        (hasKeys ? findReplacer(this.path, (folder) => findOtherWriters(folder, folder)) : undefined)
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
    options: AskOptions<never> & { readonly heard: () => void },
  ): Promise<unknown> {
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
      for await (const line of readJsonLines(answer, parseDoorLine, MAX_LINE_BYTES)) {
        options.heard()
        if ('progress' in line) options.onProgress?.(line.progress as never)
        else if ('need' in line) await this.#giveAccess(line.call, options)
        else if ('error' in line) throw failureOf(line.error)
        else return line.result ?? undefined
      }
      throw new CutOff()
    } finally {
      answer?.destroy()
    }
  }

  /** Without new keys the service says that the old ones have expired. */
  async #giveAccess(call: string, { findAccess, signal }: AskOptions<never>): Promise<void> {
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

function failureOf(answer: FailureAnswer): Error {
  return answer.code === 'INTERNAL'
    ? new ServiceDefect(`the service failed: ${answer.message}`)
    : knownFailureOf(answer)
}

/** The failure in an answer of a service. */
export function knownFailureOf({ code, message, hint, id }: FailureAnswer): DscError {
  if (Object.hasOwn(FAILURES, code)) return new DscError(code as FailureCode, message, { hint, id })
  // A newer version knows more codes.
  return new DscError('SERVICE_UNREACHABLE', `the service failed: ${message}`, { hint, id })
}
