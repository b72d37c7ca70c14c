import { z } from 'zod'
import { COPY_ORIGINS } from '../model/copy.js'

// Kinds of fields. Each has its unit, which answers.test.ts looks for in the name of every field of that kind.

/** A moment: `…At`, `since` or `until`. */
export const time = z.iso.datetime().meta({ id: 'time', unit: 'time', description: 'ISO 8601, UTC' })
/** A number of bytes: `…Bytes`. */
export const byteCount = z.int().nonnegative().meta({ unit: 'bytes' })
/** A number of bytes for each name, such as a node's: `…Bytes`, too. */
export const byteCounts = z.record(z.string(), byteCount)
/** A speed: `…BytesPerSecond`. */
export const bytesPerSecond = z.number().nonnegative().meta({ unit: 'bytes per second' })
/** How long something takes: `…Seconds`. */
export const seconds = z.number().nonnegative().meta({ unit: 'seconds' })
/** How long something short takes: `…Ms`. */
export const milliseconds = z.number().nonnegative().meta({ unit: 'milliseconds' })
/** How long a message takes: `…Microseconds`. */
export const microseconds = z.number().nonnegative().meta({ unit: 'microseconds' })
/** A part of a whole: `…Share`, `…Ratio` or `…Rate`. */
export const ratio = z.number().min(0).max(1)
/** A number of things. */
export const count = z.int().nonnegative()
/** The version of a dataset. */
export const version = z.string().meta({ description: 'digest of the listing: 64 hexadecimal digits' })
/** Where the bytes of a copy came from. */
export const origin = z.enum(COPY_ORIGINS)
/** An object whose fields are not fixed. */
export const open = z.record(z.string(), z.unknown())

/** A read-only list. */
export function list<Element extends z.ZodType>(element: Element) {
  return z.array(element).readonly()
}
