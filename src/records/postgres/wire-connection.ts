import { connect, isIP, type Socket } from 'node:net'
import { openOrClose } from '../../failure/closers.js'
import type { SqlValue } from '../database/sql-database.js'
import {
  ASK_SESSION,
  type Connection,
  type Connections,
  connectInOrder,
  type QueryResult,
  requireKind,
  type Server,
  toSession,
} from './connection.js'
import type { ConnectionPlan, ServerTarget } from './read-connection.js'
import type { Scram } from './scram.js'
import type { ServerClock } from './server-clock.js'
import {
  AnswerReader,
  askForTls,
  FAREWELL,
  formatQuery,
  formatSasl,
  formatSimpleQuery,
  formatStartup,
  type Message,
  readFailure,
  readServerMessages,
} from './wire-messages.js'

const CONNECT_TIMEOUT_MS = 5000
const ANSWER_TIMEOUT_MS = 90_000
const TLS_ANSWER_BYTES = 1
/** The only mechanism supported here; without TLS, servers offer no other. */
const MECHANISM = 'SCRAM-SHA-256'
/** Authentication requests of a server, by number. */
const AUTHENTICATION = { isDone: 0, sasl: 10, saslContinue: 11, saslFinal: 12 }

/**
 * One connection at a time to the first suitable server of the plan, without the driver, for calls that take
 * milliseconds: loading and setting up the driver takes 15 of them. The caller that takes the connection has it
 * exclusively. Servers that ask for the password by another mechanism than SCRAM are refused.
 */
export function openOneConnection(plan: ConnectionPlan, clock: ServerClock): Connections {
  return connectInOrder(
    plan.targets.map((target) => new OneConnection(plan, target)),
    clock,
  )
}

class OneConnection implements Server {
  readonly #plan: ConnectionPlan
  readonly #target: ServerTarget
  #wire: Wire | undefined
  #turn: Promise<void> = Promise.resolve()

  constructor(plan: ConnectionPlan, target: ServerTarget) {
    this.#plan = plan
    this.#target = target
  }

  async take(clock: ServerClock): Promise<Connection> {
    const before = this.#turn
    let endTurn = () => {}
    this.#turn = new Promise((resolve) => {
      endTurn = resolve
    })
    await before
    return openOrClose(async (closers) => {
      closers.add(endTurn)
      const wire = this.#wire ?? (await this.#open())
      this.#wire = wire
      const destroy = () => {
        wire.destroy()
        this.#wire = undefined
        endTurn()
      }
      const giveBack = () => (wire.isOpen ? endTurn() : destroy())
      return {
        query: (sql, parameters = []) => wire.ask(sql, parameters),
        begin: async (sql) => clock.set(Number((await wire.ask(sql, [])).rows[0]!.now_ms)),
        giveBack,
        destroy,
      }
    })
  }

  async close(): Promise<void> {
    await this.#turn
    this.#wire?.end()
  }

  async #open(): Promise<Wire> {
    return openOrClose(async (closers) => {
      const wire = await Wire.open(this.#plan, this.#target)
      closers.add(() => wire.destroy())
      if (this.#plan.kind === 'any') return wire
      requireKind(this.#plan, toSession((await wire.ask(ASK_SESSION, [])).rows, null))
      return wire
    })
  }
}

/** A query that waits for its answer. */
interface Waiter {
  readonly reader: AnswerReader
  readonly resolve: (result: QueryResult) => void
  readonly reject: (error: unknown) => void
}

/** A socket that speaks PostgreSQL's protocol; queries are sent at once and answered in order. */
class Wire {
  readonly #socket: Socket
  readonly #messages = readServerMessages((message) => this.#hear(message))
  readonly #waiting: Waiter[] = []
  /** Handles messages while the connection is being set up. */
  #greeter: ((message: Message) => void) | undefined
  #failure: Error | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes) => {
      try {
        this.#messages.push(bytes)
      } catch (error) {
        socket.destroy(error as Error)
      }
    })
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('Connection terminated unexpectedly')))
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error('Query read timeout')))
  }

  get isOpen(): boolean {
    return this.#failure === undefined
  }

  static async open(plan: ConnectionPlan, target: ServerTarget): Promise<Wire> {
    return openOrClose(async (closers) => {
      const wire = new Wire(await reach(plan, target))
      closers.add(() => wire.destroy())
      await wire.#introduce(plan, target)
      return wire
    })
  }

  ask(sql: string, parameters: readonly SqlValue[]): Promise<QueryResult> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure)
      this.#waiting.push({ reader: new AnswerReader(), resolve, reject })
      const stream = this.#socket
      stream.cork() // queries of one turn of the event loop share a packet
      process.nextTick(() => stream.uncork())
      stream.write(parameters.length > 0 ? formatQuery(sql, parameters) : formatSimpleQuery(sql))
    })
  }

  /** Says goodbye after the pending queries, which the server still answers. */
  end(): void {
    this.#socket.end(FAREWELL)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /**
   * Resolves when this side has sent its last message of the handshake: queries may follow at once, and are answered if
   * the server accepts. The code that answers password requests loads while the server gets ready.
   */
  #introduce({ user, database, applicationName, options }: ConnectionPlan, { password }: ServerTarget) {
    return new Promise<void>((resolve, reject) => {
      this.#waiting.push({ reader: new AnswerReader(), resolve: () => resolve(), reject })
      this.#socket.write(formatStartup({ user, database, application_name: applicationName, options }))
      const scram = password === undefined ? undefined : loadScram(password)
      scram?.catch(() => {}) // reported to the code that needs it
      const fail = (error: unknown) => {
        this.#fail(error as Error)
        this.#socket.destroy()
      }
      let proving: Scram | undefined
      const prove = async (body: Buffer) => {
        proving = await scram
        const answer = answerRequest(body, proving)
        this.#socket.write(answer.message)
        if (answer.isLast) resolve()
      }
      this.#greeter = ({ kind, body }) => {
        if (kind === 'E') this.#fail(readFailure(body))
        if (kind !== 'R') return
        const request = body.readInt32BE(0)
        if (request !== AUTHENTICATION.isDone && request !== AUTHENTICATION.saslFinal) {
          prove(body).catch(fail)
          return
        }
        // At once: the server may answer, in the same packet, the queries sent behind the proof.
        try {
          if (request === AUTHENTICATION.saslFinal) proving?.finish(body.toString('utf8', 4))
          else {
            proving?.requireFinished()
            resolve()
          }
        } catch (error) {
          fail(error)
        }
      }
    })
  }

  #hear(message: Message): void {
    if (message.kind === 'Z') {
      this.#greeter = undefined
      const waiter = this.#waiting.shift()
      try {
        waiter?.resolve(waiter.reader.finish())
      } catch (error) {
        waiter?.reject(error)
      }
    } else if (this.#greeter) this.#greeter(message)
    else if (this.#waiting.length > 0) this.#waiting[0]!.reader.add(message)
    else if (message.kind === 'E') this.#fail(readFailure(message.body)) // the server is going away
  }

  #fail(error: Error): void {
    this.#failure ??= error
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure)
  }
}

async function loadScram(password: string): Promise<Scram> {
  const { Scram } = await import('./scram.js')
  return new Scram(password)
}

/** Answers a request for authentication, and says whether this side then has nothing more to send. */
function answerRequest(
  body: Buffer,
  scram: Scram | undefined,
): { readonly message: Buffer; readonly isLast: boolean } {
  const request = body.readInt32BE(0)
  const words = body.toString('utf8', 4)
  if (scram === undefined) throw new Error('the server asks for a password, and there is none')
  if (request === AUTHENTICATION.saslContinue)
    return { message: formatSasl(scram.prove(words)), isLast: true }
  if (request !== AUTHENTICATION.sasl)
    throw new Error(`the server asks for authentication ${request}, which the short way does not know`)
  if (!words.split('\0').includes(MECHANISM)) throw new Error(`the server does not offer ${MECHANISM}`)
  return { message: formatSasl(scram.begin(), MECHANISM), isLast: false }
}

/** Opens a socket to the server, encrypted if the target is. A target that allows it continues unencrypted. */
async function reach(plan: ConnectionPlan, target: ServerTarget): Promise<Socket> {
  const { host, port, tls } = target
  const socket = connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port })
  socket.setNoDelay(true)
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('Connection timeout expired')))
  const canDoWithout = plan.targets.some(
    (other) => other.host === host && other.port === port && other.tls === undefined,
  )
  return openOrClose(async (closers) => {
    closers.add(() => socket.destroy())
    if (tls === undefined) {
      await once(socket, 'connect')
      return socket
    }
    socket.write(askForTls())
    const answer = await once(socket, 'data')
    if (answer.toString('latin1') === 'N' && canDoWithout) return socket
    if (answer.toString('latin1') !== 'S' || answer.length !== TLS_ANSWER_BYTES)
      throw new Error('The server does not support SSL connections')
    const { connect: encrypt } = await import('node:tls')
    const encrypted = encrypt({ ...tls, socket, ...(isIP(host) ? {} : { servername: host }) })
    await once(encrypted, 'secureConnect')
    return encrypted
  })
}

function once(socket: Socket, event: 'connect' | 'data' | 'secureConnect'): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      for (const name of [event, 'error', 'close']) socket.removeAllListeners(name)
      act()
    }
    socket.once(event, (bytes: Buffer) => settle(() => resolve(bytes)))
    socket.once('error', (error) => settle(() => reject(error)))
    socket.once('close', () => settle(() => reject(new Error('Connection terminated unexpectedly'))))
  })
}
