import { z } from 'zod'
import { isDscError } from '../failure/dsc-error.js'
import { BYTE_RATE_PATTERN, parseByteRate } from '../model/byte-rate.js'
import { BYTE_SIZE_PATTERN, parseByteSize } from '../model/byte-size.js'
import { DURATION_PATTERN, formatDuration, parseDuration, requireTimer } from '../model/duration.js'

// The kinds of values in dsc.yaml, each with what is expected instead of a wrong one.

export const text = (expected: string) => z.string({ error: expected }).min(1, { error: expected })
export const integer = (least: number, most: number) => {
  const error = `a whole number from ${least} to ${most}`
  return z.int({ error }).min(least, { error }).max(most, { error })
}
export const flag = z.boolean({ error: 'true or false' })

/** Turns the error of a model's `parse…` into a zod issue; its message has both expected and found. */
export function parsedWith<In, Out>(parse: (raw: In) => Out, path: string[] = []) {
  return (raw: In, context: z.RefinementCtx): Out => {
    try {
      return parse(raw)
    } catch (error) {
      if (!(error instanceof RangeError || isDscError(error, 'USAGE'))) throw error
      context.addIssue({ code: 'custom', message: error.message, path })
      return z.NEVER
    }
  }
}

const size = { error: 'a byte size such as 50GiB, 10GB or 4096' }
export const byteSize = z
  .union([z.int(size).min(0, size), z.string(size).regex(new RegExp(BYTE_SIZE_PATTERN), size)], size)
  .transform(parsedWith(parseByteSize))

const rate = { error: 'a rate such as 200MiB/s, 500MB or 1Gbit/s' }
export const byteRate = z
  .union([z.int(rate).min(1, rate), z.string(rate).regex(new RegExp(BYTE_RATE_PATTERN), rate)], rate)
  .transform(parsedWith(parseByteRate))

const span = { error: 'a duration such as 90s, 24h or 1h30m' }
export const duration = z
  .string(span)
  .regex(new RegExp(DURATION_PATTERN), span)
  .transform(parsedWith(parseDuration))

export const waited = duration.transform(parsedWith((waitMs) => requireTimer(waitMs, formatDuration(waitMs))))

const share = { error: 'a percentage above 0 and up to 100, such as 80' }
export const percent = z
  .union(
    [
      z.number(share).gt(0, share).lte(100, share),
      z.string(share).regex(/^(?=.*[1-9])(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)\s*%$/, share),
    ],
    share,
  )
  .transform((raw) => Number.parseFloat(String(raw)))
