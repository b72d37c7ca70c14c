import { readFile, writeFile } from 'node:fs/promises'
import type { z } from 'zod'
import { DscError } from '../failure/dsc-error.js'
import { PLAN_VERSION } from './plan/plan-format.js'

/** The purpose of a file that a user names, and how to create one: errors state both. */
interface FilePurpose {
  readonly what: string
  readonly version: number
  readonly hint: string
}

/** A profile named by the user. */
export const PROFILE_FILE: FilePurpose = {
  what: 'profile',
  version: 1,
  hint: 'make one with `dsc memory profile -- python train.py`, or dsc.memory.profile(model, inputs)',
}
/** A plan named by the user. */
export const PLAN_FILE: FilePurpose = {
  what: 'plan',
  version: PLAN_VERSION,
  hint: 'make one with `dsc memory plan profile.json --budget 24GiB`',
}
/** A run report named by the user. */
export const RUN_FILE: FilePurpose = {
  what: 'run report',
  version: 1,
  hint: 'have one written with offload(plan, report="run.json")',
}

/** Reads a JSON file named by the user. */
export async function readJsonFile(
  path: string,
  { what, hint }: FilePurpose,
): Promise<{ value: unknown; bytes: Buffer }> {
  const bytes = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    throw invalid(`cannot read the ${what} ${path}: ${reasonOf(cause)}`, hint, cause)
  })
  try {
    return { value: JSON.parse(bytes.toString('utf8')), bytes }
  } catch (cause) {
    throw invalid(`the ${what} ${path} is not JSON: ${(cause as Error).message}`, hint, cause)
  }
}

/** Reads a JSON file named by the user, in the form of `schema`. */
export async function readNamedFile<T>(
  path: string,
  purpose: FilePurpose,
  schema: z.ZodType<T>,
): Promise<{ value: T; bytes: Buffer }> {
  const { value, bytes } = await readJsonFile(path, purpose)
  const parsed = schema.safeParse(value)
  if (parsed.success) return { value: parsed.data, bytes }
  const [issue] = parsed.error.issues
  throw invalidContents(path, purpose, `${issue?.path.join('.') || 'top level'}: ${issue?.message}`)
}

/** Writes a file to the path that the user chose. */
export async function writeNamedFile(path: string, what: string, text: string): Promise<void> {
  await writeFile(path, text).catch((cause: NodeJS.ErrnoException) => {
    throw invalid(
      `cannot write the ${what} ${path}: ${reasonOf(cause)}`,
      'name a file in a folder that exists and you may write to',
      cause,
    )
  })
}

/** An error about a file's contents: where in it, and what is wrong there. */
export function invalidContents(
  path: string,
  { what, version, hint }: FilePurpose,
  problem: string,
): DscError {
  return invalid(`${path} is not a ${what} of version ${version}: ${problem}`, hint)
}

function invalid(message: string, hint: string, cause?: unknown): DscError {
  return new DscError('MEMORY_FILE_INVALID', message, { hint, cause })
}

function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return 'there is no such file or folder'
  if (error.code === 'EACCES') return 'no permission'
  if (error.code === 'EISDIR') return 'it is a folder'
  return error.message
}
