import { setTimeout as sleep } from 'node:timers/promises'
import { S3Error } from './s3-request.js'

/** A record that takes longer than this to answer is not waited for where an earlier answer is known, ms. */
const PATIENCE_MS = 500
/** Nor longer than this where none is: clients come again, and a record that is away is asked for a minute, ms. */
const LONGEST_MS = 5000

/** What the record answers; while it is away, what it said before. Throws ServiceUnavailable where nothing is known. */
export async function answerInTime<Answer>(
  asked: Promise<Answer>,
  before: { readonly answer: Answer } | undefined,
): Promise<Answer> {
  asked.catch(() => {}) // it may fail when nobody listens any more
  const late = sleep(before === undefined ? LONGEST_MS : PATIENCE_MS, 'late' as const, { ref: false })
  try {
    const answer = await Promise.race([asked, late])
    if (answer !== 'late') return answer
  } catch (error) {
    if (before === undefined) throw error
  }
  if (before !== undefined) return before.answer
  throw new S3Error(
    { code: 'ServiceUnavailable', status: 503, retryAfterSeconds: 5 },
    'the record of what is where does not answer',
  )
}
