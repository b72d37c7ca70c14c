import { randomBytes } from 'node:crypto'

/** Makes a failure's id in the history: 12 hexadecimal digits, random. */
export function createFailureId(): string {
  return randomBytes(6).toString('hex')
}

/** Whether `text` could be such an id; a dataset may have such a name, too. */
export function isFailureId(text: string): boolean {
  return /^[0-9a-f]{12}$/.test(text)
}
