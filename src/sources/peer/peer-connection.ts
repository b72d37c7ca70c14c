import type { Headers } from '../../http/answer-listener.js'
import { HttpPool } from '../../http/http-pool.js'
import { checkAgentIdentity, findPlainness } from '../../platform/agent-certificate.js'
import {
  DIGEST_HEADER,
  FACTS_HEADER,
  NO_WAIT_HEADER,
  NODE_HEADER,
  PROVEN_HEADER,
  parseFacts,
  parsePartDigest,
  URGENCY_HEADER,
} from '../peer-wire.js'
import { GatheredQuestions } from './gathered-questions.js'
import {
  ComingAnswer,
  isOk,
  NO_AGENT,
  type ObjectQuestion,
  type PeerAnswer,
  type PeerDigest,
} from './peer-answer.js'

/** Longer than an agent holds a request for a part that is still arriving. */
const SILENCE_MS = 12_000
const CONNECT_TIMEOUT_MS = 3000

/** How this node and its peers authenticate each other. */
export interface PeerAccess {
  readonly token: string | undefined
  /** Certificates that must have signed the agents' own; undefined = those of the system. */
  readonly ca: string | undefined
}

/** Keep-alive connections to one agent. */
export interface PeerConnection {
  /** Requests bytes of an object. Rejects only with errors from its sink. */
  get(question: ObjectQuestion): Promise<PeerAnswer>
  /** Asks a node that holds a request for the bytes to fetch them next. Does nothing if the node cannot be told. */
  hurry(part: { readonly path: string; readonly offset: number; readonly length: number }): void
  close(): Promise<void>
}

/** Opens up to `connections` connections to the agent at `url`. */
export function openPeerConnection(url: string, access: PeerAccess, connections: number): PeerConnection {
  const pool = new HttpPool(url, {
    connections,
    ca: access.ca,
    checkServerIdentity: checkAgentIdentity,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
  })
  const own: Record<string, string> = {
    host: new URL(url).host,
    ...(access.token === undefined ? {} : { authorization: `Bearer ${access.token}` }),
  }
  const askAlone = (question: ObjectQuestion) => ask(pool, own, question)
  const gathered = new GatheredQuestions({ pool, headers: own, stallTimeoutMs: SILENCE_MS, askAlone })
  const plainness = findPlainness(url, access.ca)
  return {
    async get(question) {
      if (question.signal?.aborted) return { outcome: 'failed', problem: 'stopped' }
      if (plainness !== undefined) return { outcome: 'failed', problem: plainness }
      return question.gathered ? gathered.ask(question, question.gathered) : askAlone(question)
    },
    hurry({ path, offset, length }) {
      if (plainness !== undefined) return
      const headers = {
        ...own,
        [NO_WAIT_HEADER]: '1',
        [URGENCY_HEADER]: 'wanted',
        ...(length > 0 ? { range: `bytes=${offset}-${offset + length - 1}` } : {}),
      }
      const nothing = () => {}
      pool.send(
        { method: 'HEAD', path, headers, stallTimeoutMs: SILENCE_MS },
        { onHead: nothing, onData: nothing, onEnd: nothing, onError: nothing },
      )
    },
    close: async () => pool.close(),
  }
}

/** Requests one object by itself. */
function ask(
  pool: HttpPool,
  own: Readonly<Record<string, string>>,
  question: ObjectQuestion,
): Promise<PeerAnswer> {
  const { path, offset, length, held, isSpared } = question
  const isHead = length === 0
  const urgency = held ?? (isSpared ? 'listed' : undefined)
  const asker = {
    ...own,
    ...(urgency && { [URGENCY_HEADER]: urgency }),
    ...(held ? {} : { [NO_WAIT_HEADER]: '1' }),
  }
  const headers = isHead ? asker : { ...asker, range: `bytes=${offset}-${offset + length - 1}` }
  const answer = new ComingAnswer(question, {
    cancel: () => control.cancel(),
    pause: () => control.pause(),
    resume: () => control.resume(),
  })
  const control = pool.send(
    { method: isHead ? 'HEAD' : 'GET', path, headers, stallTimeoutMs: SILENCE_MS },
    {
      onHead(status, answered) {
        if (isOk(status) || answered[NODE_HEADER.toLowerCase()] !== undefined)
          answer.begin(
            status,
            isOk(status) ? parseFacts(answered[FACTS_HEADER]) : undefined,
            readDigest(answered),
          )
        else answer.settle(NO_AGENT)
      },
      onData: (chunk) => answer.take(chunk),
      onEnd: () => answer.end(),
      onError: (error) => answer.fail(error),
    },
  )
  return answer.done
}

function readDigest(headers: Headers): PeerDigest | undefined {
  const part = parsePartDigest(headers[DIGEST_HEADER])
  return part && { ...part, isProven: headers[PROVEN_HEADER] !== undefined }
}
