import { DscError } from '../../failure/dsc-error.js'
import { JOB_HEADER } from '../../memory/params/message.js'
import { nameDefaultJob } from '../../platform/default-job.js'
import { readToken } from './exchange-serve.js'

/** Asks a central node for its status, after a change if given. Throws if it refuses or does not answer. */
export async function askParameterServer(
  { server, tokenFile }: { readonly server: string; readonly tokenFile?: string },
  { change, job, signal }: { readonly change?: object; readonly job?: string; readonly signal: AbortSignal },
): Promise<Record<string, unknown>> {
  const token = await readToken(tokenFile)
  const headers: Record<string, string> = {
    [JOB_HEADER]: job ?? nameDefaultJob(),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  }
  const request = change
    ? { method: 'POST', body: JSON.stringify(change), headers, signal }
    : { headers, signal }
  const path = change ? '/v1/optimizer' : '/v1/status'
  const answer = await fetch(new URL(path, server), request).catch((cause: unknown) => {
    const inner = (cause as { cause?: { code?: string; message?: string } }).cause
    const reason = inner?.code ?? inner?.message ?? String(cause)
    throw new DscError('PARAMS_UNREACHABLE', `${server} does not answer (${reason})`, {
      hint: 'start one with `dsc params serve`, or name it with --server',
      cause,
    })
  })
  if (answer.ok) return (await answer.json()) as Record<string, unknown>
  const body = (await answer.json().catch(() => ({}))) as { error?: { reason: string; message: string } }
  const { reason, message } = body.error ?? { reason: '', message: `it answers ${answer.status}` }
  throw new DscError('PARAMS_REFUSED', `${server}: ${message}`, {
    ...(reason === 'token' ? { hint: '--token-file' } : {}),
  })
}

/** A status as lines of names and values. */
export function formatParameterStatus(status: Record<string, unknown>): string {
  return Object.entries(status)
    .map(([name, value]) => `${name.padEnd(14)} ${Array.isArray(value) ? value.join(' ') : value}`)
    .join('\n')
}
