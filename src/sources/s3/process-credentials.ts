import { type ExecException, exec } from 'node:child_process'
import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { tryJson } from '../../model/try-json.js'

const answer = z.looseObject({
  Version: z.literal(1),
  AccessKeyId: z.string().min(1),
  SecretAccessKey: z.string().min(1),
  SessionToken: z.string().nullish(),
  Expiration: z
    .string()
    .refine((text) => text === '' || !Number.isNaN(Date.parse(text)))
    .nullish(),
})

/** Keys in the form that the AWS SDK takes from a provider. */
export interface ProcessKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/**
 * Runs the `credential_process` of a profile in a shell, as the AWS SDK does, and reads the keys that it prints. Like
 * the AWS CLI, it fails with the process: the SDK would go on to the machine's role, and hide the reason. Rejects with
 * SOURCE_DENIED, which names the program without its arguments: they may be secret.
 */
export async function runCredentialProcess(
  command: string,
  { what, profile }: { readonly what: string; readonly profile: string },
): Promise<ProcessKeys> {
  const [, quoted, plain] = /^\s*(?:"([^"]+)"|(\S+))/.exec(command) ?? []
  const program = JSON.stringify(quoted ?? plain ?? '')
  const fail = (problem: string, hint: string, cause?: unknown) =>
    new DscError(
      'SOURCE_DENIED',
      `${what}: no AWS credentials from ${program}, the credential_process of the AWS profile ${JSON.stringify(profile)}: ${problem}`,
      { hint, cause },
    )
  const printed = await new Promise<string>((resolve, reject) => {
    const child = exec(command, (error, stdout, stderr) => {
      if (error === null) resolve(stdout.trim())
      else reject(fail(describeEnd(error, stderr), `run ${program} by itself, and log in if it asks for it`))
    })
    child.stdin?.on('error', () => {}) // it has ended already
    child.stdin?.end() // a question would wait for ever
  })
  const parsed = answer.safeParse(tryJson(printed))
  if (!parsed.success) {
    const found = printed === '' ? 'nothing' : printed.startsWith('{') ? 'another object' : 'another text'
    throw fail(
      `expected JSON with Version 1, AccessKeyId, SecretAccessKey and an ISO 8601 Expiration, found ${found}`,
      `run ${program} by itself: stdout may have that JSON alone`,
    )
  }
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = parsed.data
  const expiration = Expiration ? new Date(Expiration) : undefined
  if (expiration !== undefined && expiration.getTime() <= Date.now())
    throw fail(
      `it gave credentials that expired at ${expiration.toISOString()}`,
      `log in again where ${program} gets them, and check this machine’s clock`,
    )
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    ...(SessionToken ? { sessionToken: SessionToken } : {}),
    ...(expiration ? { expiration } : {}),
  }
}

function describeEnd({ code, signal }: ExecException, stderr: string): string {
  const end = `it exited with ${code ?? signal}`
  const last = stderr.trim().split('\n').at(-1)
  return last ? `${end}: ${last.slice(0, 300)}` : end
}
