import { text as readText } from 'node:stream/consumers'
import { interrupted } from '../../cache/prepare/interrupted.js'
import { DscError } from '../../failure/dsc-error.js'
import { askOnce, NoAnswer, type Question } from '../../http/ask-once.js'
import { JOB_HEADER } from '../../memory/params/message.js'
import { tryJson } from '../../model/try-json.js'
import { nameDefaultJob } from '../../platform/default-job.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { readToken } from './exchange-serve.js'

/** How long a central node may send no byte, in ms: an update of a large model takes seconds. */
const PATIENCE_MS = 60_000

/** Asks a central node for its status, after a change if given. Throws if it refuses or does not answer. */
export async function askParameterServer(
  { server, tokenFile }: { readonly server: string; readonly tokenFile?: string },
  {
    change,
    job,
    signal,
  }: { readonly change?: object; readonly job?: string | undefined; readonly signal: AbortSignal },
): Promise<AnswerOf<'params status'>> {
  const token = await readToken(tokenFile)
  const question: Question = {
    method: change && 'POST',
    body: change && JSON.stringify(change),
    headers: { [JOB_HEADER]: job ?? nameDefaultJob() },
    ...{ token, signal, connectTimeoutMs: PATIENCE_MS, silenceMs: PATIENCE_MS },
  }
  const url = new URL(change ? '/v1/optimizer' : '/v1/status', server).href
  const { status, text } = await askForText(url, question).catch((cause: NodeJS.ErrnoException) => {
    if (signal.aborted) throw interrupted(signal)
    const reason = cause instanceof NoAnswer ? cause.message : (cause.code ?? cause.message)
    throw new DscError('PARAMS_UNREACHABLE', `${server} does not answer (${reason})`, {
      hint: 'start one with `dsc params serve`, or name it with --server',
      cause,
    })
  })
  const body = parseObject(text)
  if (status === 200) {
    if (typeof body?.version === 'number') return body as AnswerOf<'params status'>
    throw new DscError('PARAMS_UNREACHABLE', `${server} answers, but is no central node`, {
      hint: 'name the URL that `dsc params serve` prints with --server',
    })
  }
  const { reason, message } = (body?.error ?? {}) as { readonly reason?: string; readonly message?: string }
  throw new DscError('PARAMS_REFUSED', `${server}: ${message ?? `it answers ${status}`}`, {
    hint: reason === 'token' ? '--token-file' : undefined,
  })
}

async function askForText(url: string, question: Question): Promise<{ status: number; text: string }> {
  const answer = await askOnce(url, question)
  return { status: answer.statusCode ?? 0, text: await readText(answer) }
}

/** Undefined: the server is no central node, which answers with an object. */
function parseObject(text: string): Record<string, unknown> | undefined {
  const raw = tryJson(text)
  return typeof raw === 'object' && raw !== null ? (raw as Record<string, unknown>) : undefined
}

/** A status as lines of names and values. */
export function formatParameterStatus(status: AnswerOf<'params status'>): string {
  return Object.entries(status)
    .map(([name, value]) => `${name.padEnd(14)} ${Array.isArray(value) ? value.join(' ') : value}`)
    .join('\n')
}
