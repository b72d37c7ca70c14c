import type { AnswerListener } from '../../http/answer-listener.js'
import type { HttpPool, RequestControl } from '../../http/http-pool.js'
import { formatObjectQuery, formatObjectsUrl, type GatheredHead, readGathered } from '../gathered-wire.js'
import { NODE_HEADER, parsePartDigest, requireFacts, URGENCY_HEADER, type WireObject } from '../peer-wire.js'
import { ComingAnswer, isOk, NO_AGENT, type ObjectQuestion, type PeerAnswer } from './peer-answer.js'

/** Maximum number of objects over one connection: more would wait for each other while other connections are idle. */
const MAX_OBJECTS = 16
/** An agent accepts 16 KiB of head. */
const MAX_QUERY_BYTES = 8 * 1024

/** One of the requests sent together. */
interface Gathered {
  readonly question: ObjectQuestion
  readonly object: WireObject
  readonly query: string
  readonly answer: ComingAnswer
  sent: SentTogether | undefined
}

interface GatheredOptions {
  readonly pool: HttpPool
  /** Headers sent with every request. */
  readonly headers: Readonly<Record<string, string>>
  readonly stallTimeoutMs: number
  /** Fallback for an agent that does not support gathered requests. */
  readonly askAlone: (question: ObjectQuestion) => Promise<PeerAnswer>
}

/** Asks an agent in one request for all small objects requested in one turn of the event loop. */
export class GatheredQuestions {
  readonly #options: GatheredOptions
  #waiting: Gathered[] = []
  #isUnderstood = true

  constructor(options: GatheredOptions) {
    this.#options = options
  }

  ask(question: ObjectQuestion, object: WireObject): Promise<PeerAnswer> {
    if (!this.#isUnderstood) return this.#options.askAlone(question)
    const answer = new ComingAnswer(question, {
      cancel: () => gathered.sent?.cancelUnused(),
      pause: () => gathered.sent?.pause(),
      resume: () => gathered.sent?.resume(),
    })
    const gathered: Gathered = {
      ...{ question, object, answer },
      query: formatObjectQuery(object),
      sent: undefined,
    }
    if (this.#waiting.length === 0) setImmediate(() => this.#sendAll())
    this.#waiting.push(gathered)
    return answer.done
  }

  #sendAll(): void {
    const waiting = this.#waiting.filter(({ answer }) => !answer.isSettled)
    this.#waiting = []
    // If the agent refused one that it may refuse, it would refuse the others, too.
    this.#sendInTurn(waiting.filter(({ question }) => !question.isSpared))
    this.#sendInTurn(waiting.filter(({ question }) => question.isSpared))
  }

  #sendInTurn(waiting: readonly Gathered[]): void {
    for (let from = 0; from < waiting.length; ) {
      const together = waiting.slice(from, from + countTogether(waiting.slice(from, from + MAX_OBJECTS)))
      from += together.length
      this.#send(together)
    }
  }

  #send(together: readonly Gathered[]): void {
    const sent = new SentTogether(together, () => {
      this.#isUnderstood = false
      for (const { question, answer } of together)
        this.#options.askAlone(question).then(
          (found) => answer.settle(found),
          (error: unknown) => answer.reject(error),
        )
    })
    for (const gathered of together) gathered.sent = sent
    sent.begin(this.#options)
  }
}

/** Number of requests that fit into one; at least 1. */
function countTogether(waiting: readonly Gathered[]): number {
  let bytes = 0
  const tooMany = waiting.findIndex(({ query }) => {
    bytes += query.length + 1
    return bytes > MAX_QUERY_BYTES
  })
  return tooMany === -1 ? waiting.length : Math.max(1, tooMany)
}

/** Requests that were sent together, while their answers arrive one after the other. */
class SentTogether {
  readonly #gathered: readonly Gathered[]
  readonly #onNotUnderstood: () => void
  #control: RequestControl | undefined
  #current = 0

  constructor(gathered: readonly Gathered[], onNotUnderstood: () => void) {
    this.#gathered = gathered
    this.#onNotUnderstood = onNotUnderstood
  }

  begin({ pool, headers, stallTimeoutMs }: GatheredOptions): void {
    const { object, question } = this.#gathered[0]!
    const { dataset, source } = object
    const asked = question.isSpared ? { ...headers, [URGENCY_HEADER]: 'listed' } : headers
    const path = formatObjectsUrl(
      dataset,
      source,
      this.#gathered.map(({ query }) => query),
    )
    this.#control = pool.send({ method: 'GET', path, headers: asked, stallTimeoutMs }, this.#listen())
  }

  pause(): void {
    this.#control?.pause()
  }

  resume(): void {
    this.#control?.resume()
  }

  /** Closes the connection once nothing that it still carries is needed. */
  cancelUnused(): void {
    if (this.#gathered.every(({ answer }) => answer.isSettled)) this.#control?.cancel()
  }

  #listen(): AnswerListener {
    let status = 0
    const objects = readGathered((head, lengthBytes) => {
      const answer = this.#beginNext(head, lengthBytes)
      return {
        take: (piece) => answer.take(piece),
        end: () => {
          answer.end()
          this.#current += 1
        },
      }
    })
    return {
      onHead: (code, headers) => {
        status = code
        if (isOk(code)) return
        if (headers[NODE_HEADER.toLowerCase()] === undefined)
          this.#settleAll((answer) => answer.settle(NO_AGENT))
        else if (code === 404) this.#onNotUnderstood()
        else
          this.#settleAll((answer) => {
            answer.begin(code, undefined, undefined)
            answer.end()
          })
      },
      onData: (chunk) => {
        if (isOk(status)) objects.push(chunk)
      },
      onEnd: () => {
        if (isOk(status)) this.#settleAll((answer) => answer.fail(new Error('left out an object')))
      },
      onError: (error) => {
        if (status === 0 || isOk(status)) this.#settleAll((answer) => answer.fail(error))
      },
    }
  }

  #beginNext({ status, facts, digest, isProven }: GatheredHead, lengthBytes: number): ComingAnswer {
    const next = this.#gathered[this.#current]
    if (next === undefined) throw new Error('sent more objects than it was asked for')
    const expected = isOk(status) ? next.question.length : 0
    // The objects behind it would wait for bytes that may never come.
    if (lengthBytes !== expected)
      throw new Error(`sends ${lengthBytes} bytes of an object instead of ${expected}`)
    const part = parsePartDigest(digest)
    next.answer.begin(status, facts && requireFacts(facts), part && { ...part, isProven: isProven === true })
    return next.answer
  }

  #settleAll(settle: (answer: ComingAnswer) => void): void {
    for (const { answer } of this.#gathered) settle(answer)
  }
}
