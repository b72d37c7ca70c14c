import type { ManifestObject } from '../../model/manifest.js'
import { S3Error } from './s3-request.js'

/** The facts that decide an answer to GET or HEAD of an object. */
type ObjectState = Pick<ManifestObject, 'sizeBytes' | 'etag' | 'modifiedAtMs'>

/** The answer to a request for an object: all of it, one range, or "not modified". */
export type ObjectAnswer =
  | { readonly status: 200; readonly offset: 0; readonly length: number }
  | {
      readonly status: 206
      readonly offset: number
      readonly length: number
      /** Number of parts of the upload, if the client asked for one of several. */
      readonly parts?: number
    }
  | { readonly status: 304 }

/** A part of the upload, requested instead of a range. */
interface AskedPart {
  readonly number: number
  /** Size of every part but the last; undefined: unknown. */
  readonly uploadPartBytes: number | undefined
}

/** HTTP accepts no other form of date, although `Date.parse` even finds one in a bare number. */
const HTTP_DATE = /^[A-Z][a-z]+, .+ GMT$/
/** C's asctime format, the oldest of HTTP's three (RFC 9110, 5.6.7): it names no zone and means GMT. */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Decides the answer to a request for an object from its conditions and range (RFC 9110, 13.2.2 and 14.2). An
 * unreadable range, or several, means the whole object, as in S3. Throws an S3Error if a condition fails, or if a range
 * or part starts after the end.
 */
export function planObjectAnswer(headers: Headers, object: ObjectState, part?: AskedPart): ObjectAnswer {
  const header = (name: string) => (typeof headers[name] === 'string' ? (headers[name] as string) : undefined)
  /** Whether the object changed after the date in a header; undefined if the header has no date. */
  const isChangedSince = (name: string) => {
    const atMs = parseHttpDate(header(name) ?? '')
    return Number.isNaN(atMs) ? undefined : Math.floor(object.modifiedAtMs / 1000) * 1000 > atMs
  }
  const [ifMatch, ifNoneMatch] = [header('if-match'), header('if-none-match')]
  const isRefused =
    ifMatch === undefined ? isChangedSince('if-unmodified-since') : !isSame(ifMatch, object.etag)
  if (isRefused) throw new S3Error('PreconditionFailed', 'the object is not as the request expects')
  const isKnown =
    ifNoneMatch === undefined
      ? isChangedSince('if-modified-since') === false
      : matches(ifNoneMatch, object.etag)
  if (isKnown) return { status: 304 }
  const ifRange = header('if-range')
  const range = ifRange === undefined || isSame(ifRange, object.etag) ? header('range') : undefined
  if (part === undefined) return planRange(range, object.sizeBytes)
  if (range === undefined) return planPart(part, object)
  throw new S3Error('InvalidRequest', 'Cannot specify both Range header and partNumber query parameter')
}

/** The etag of a multipart object ends in the number of parts; any other object is its own first part. */
function planPart(
  { number, uploadPartBytes }: AskedPart,
  { etag, sizeBytes }: Pick<ObjectState, 'etag' | 'sizeBytes'>,
): ObjectAnswer {
  const parts = Number(/-(\d+)$/.exec(etag ?? '')?.[1] ?? 1)
  if (number > parts)
    throw new S3Error(
      'InvalidPartNumber',
      `The requested partnumber is not satisfiable: the object has ${parts}`,
    )
  if (sizeBytes === 0) return { status: 200, offset: 0, length: 0 }
  if (parts === 1) return { status: 206, offset: 0, length: sizeBytes }
  const offset = (number - 1) * (uploadPartBytes ?? sizeBytes)
  if (offset >= sizeBytes || uploadPartBytes === undefined)
    throw new S3Error(
      'NotImplemented',
      'the origin did not say where the parts of this object begin: ask for ranges',
    )
  return { status: 206, offset, length: Math.min(uploadPartBytes, sizeBytes - offset), parts }
}

function planRange(range: string | undefined, sizeBytes: number): ObjectAnswer {
  const whole = { status: 200, offset: 0, length: sizeBytes } as const
  const match = /^bytes=(\d*)-(\d*)$/.exec(range ?? '')
  const [first = '', last = ''] = match?.slice(1) ?? []
  if (
    !match ||
    (first === '' && last === '') ||
    (first !== '' && last !== '' && Number(last) < Number(first))
  )
    return whole
  const offset = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first)
  const end = first === '' || last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1)
  if (offset >= end) {
    // Some clients recognize an empty object by these.
    const details = { RangeRequested: range!, ActualObjectSize: String(sizeBytes) }
    throw new S3Error('InvalidRange', 'The requested range is not satisfiable', { details })
  }
  return { status: 206, offset, length: end - offset }
}

/** Unix epoch in ms; NaN if the date is invalid. */
function parseHttpDate(date: string): number {
  if (HTTP_DATE.test(date)) return Date.parse(date)
  return ASCTIME.test(date) ? Date.parse(`${date} GMT`) : Number.NaN
}

/** Strong comparison: weakly equal objects may differ in bytes, so their ranges cannot be combined. */
function isSame(condition: string, etag: string | null): boolean {
  if (condition.trim() === '*') return true
  return condition.split(',').some((one) => etag !== null && one.trim().replaceAll('"', '') === etag)
}

/** Weak comparison. */
function matches(condition: string, etag: string | null): boolean {
  return isSame(condition.replaceAll(/(^|,\s*)W\//g, '$1'), etag)
}
