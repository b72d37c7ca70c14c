import { setTimeout as sleep } from 'node:timers/promises'
import { S3Error } from './s3-request.js'

/** How long to wait for the record if an earlier answer is known, in ms. */
const PATIENCE_MS = 500
/** The same if no answer is known, in ms: clients retry, while a query to a record that is away lasts a minute. */
const LONGEST_MS = 5000

/** The record's answer, or the earlier one while the record is away. Throws ServiceUnavailable if neither is known. */
export async function answerInTime<Answer>(
  asked: Promise<Answer>,
  before: { readonly answer: Answer } | undefined,
): Promise<Answer> {
  asked.catch(() => {}) // it may fail after everybody stopped waiting
  const late = sleep(before === undefined ? LONGEST_MS : PATIENCE_MS, 'late' as const, { ref: false })
  try {
    const answer = await Promise.race([asked, late])
    if (answer !== 'late') return answer
  } catch (error) {
    if (before === undefined) throw error
  }
  if (before !== undefined) return before.answer
  throw new S3Error('ServiceUnavailable', 'the record of what is where does not answer')
}
