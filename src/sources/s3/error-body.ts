import { decodeEntities } from './decode-entities.js'

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g

/** Code and message of an S3 server's error answer, as text that is safe for a terminal; empty if absent. */
export function readErrorBody(body: string): { readonly code: string; readonly message: string } {
  return { code: readText(body, 'Code'), message: readText(body, 'Message') }
}

function readText(body: string, element: string): string {
  const raw = new RegExp(`<${element}>([^<]*)</${element}>`).exec(body)?.[1] ?? ''
  return decodeEntities(raw).replace(CONTROL, ' ').trim()
}
