import { S3Error } from './s3-request.js'

/** What decides about an answer to GET or HEAD of an object. */
interface ObjectState {
  readonly sizeBytes: number
  /** Without quotes. */
  readonly etag: string | null
  readonly modifiedAtMs: number
}

/** The answer to a request for an object: all of it, one range of it, or that it is unchanged. */
export type ObjectAnswer =
  | { readonly status: 200; readonly offset: 0; readonly length: number }
  | { readonly status: 206; readonly offset: number; readonly length: number }
  | { readonly status: 304 }

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Decides how a request for an object is answered, by its conditions and its range (RFC 9110, 13.2.2 and 14.2). A
 * range that cannot be read, or several of them, mean the whole object, as at S3. Throws an S3Error for a condition
 * that does not hold and a range behind the end.
 */
export function planObjectAnswer(headers: Headers, object: ObjectState): ObjectAnswer {
  const header = (name: string) => (typeof headers[name] === 'string' ? (headers[name] as string) : undefined)
  /** Whether it changed after the date in a header; undefined: there is no such date. */
  const isChangedSince = (name: string) => {
    const atMs = Date.parse(header(name) ?? '')
    return Number.isNaN(atMs) ? undefined : Math.floor(object.modifiedAtMs / 1000) * 1000 > atMs
  }
  const [ifMatch, ifNoneMatch] = [header('if-match'), header('if-none-match')]
  const isRefused =
    ifMatch === undefined ? isChangedSince('if-unmodified-since') : !matches(ifMatch, object.etag)
  if (isRefused)
    throw new S3Error({ code: 'PreconditionFailed', status: 412 }, 'the object is not as the request expects')
  const isKnown =
    ifNoneMatch === undefined
      ? isChangedSince('if-modified-since') === false
      : matches(ifNoneMatch, object.etag)
  if (isKnown) return { status: 304 }
  const ifRange = header('if-range')
  const range = ifRange === undefined || matches(ifRange, object.etag) ? header('range') : undefined
  return planRange(range, object.sizeBytes)
}

function planRange(range: string | undefined, sizeBytes: number): ObjectAnswer {
  const whole = { status: 200, offset: 0, length: sizeBytes } as const
  const match = /^bytes=(\d{0,16})-(\d{0,16})$/.exec(range ?? '')
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
    // By these some clients know an empty object.
    const details = { RangeRequested: range!, ActualObjectSize: String(sizeBytes) }
    throw new S3Error(
      { code: 'InvalidRange', status: 416, details },
      'The requested range is not satisfiable',
    )
  }
  return { status: 206, offset, length: end - offset }
}

function matches(condition: string, etag: string | null): boolean {
  if (condition.trim() === '*') return true
  return condition
    .split(',')
    .some((one) => etag !== null && one.trim().replace(/^W\//, '').replaceAll('"', '') === etag)
}
