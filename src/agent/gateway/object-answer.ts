import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { factsOfEntry } from '../../manifest/facts-of-entry.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Dataset } from '../../model/dataset.js'
import { SOURCE_CHECKSUMS } from '../../model/manifest.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { GatewayCopies } from './gateway-copies.js'
import type { Located } from './located.js'
import { type ObjectAnswer, planObjectAnswer } from './plan-object-answer.js'
import { S3Error } from './s3-request.js'

/** An object that a client asks for. */
export interface AskedObject {
  readonly dataset: Dataset
  /** Relative to the dataset's prefix. */
  readonly key: string
  readonly versionId: string | undefined
  /** A part of the upload; undefined: as the headers ask. */
  readonly partNumber?: number | undefined
  /** Headers of the answer that the client chooses. */
  readonly answerHeaders?: Readonly<Record<string, string>> | undefined
}

/** Plans the answer for a located object; undefined: it is no longer there. Throws an S3Error for a refusal. */
export function findAnswer(
  copies: GatewayCopies,
  located: Located,
  { asked, headers }: { readonly asked: AskedObject; readonly headers: IncomingHttpHeaders },
): { readonly entry: ManifestEntry; readonly answer: ObjectAnswer } | undefined {
  const entry = copies.look(
    located,
    (manifest) => manifest.find(asked.key) ?? manifest.markers.find(asked.key) ?? null,
  )
  if (entry === undefined) return undefined
  if (entry === null || entry.state === 'elsewhere') throw missing(asked)
  if (asked.versionId !== undefined && asked.versionId !== (entry.versionId ?? 'null'))
    throw new S3Error('NoSuchVersion', 'dsc serves one version of each object, and not this one')
  const part =
    asked.partNumber === undefined
      ? undefined
      : { number: asked.partNumber, uploadPartBytes: knownPartBytes(entry) }
  return { entry, answer: planObjectAnswer(headers, entry, part) }
}

/** The refusal for an object that does not exist. */
export function missing({ key }: Pick<AskedObject, 'key'>): S3Error {
  return new S3Error('NoSuchKey', `The specified key does not exist: ${key}`)
}

function knownPartBytes({ facts }: ManifestEntry): number | undefined {
  return facts === null || facts.isPartSizeGuessed ? undefined : (facts.uploadPartBytes ?? undefined)
}

/** The headers of an answer, except those that every answer has. */
export function headersOf(
  request: {
    readonly asked: AskedObject
    readonly headers: IncomingHttpHeaders
    /** The source's facts about an object that is read from it; absent: those of the copy. */
    readonly facts?: ObjectFacts | undefined
  },
  entry: ManifestEntry,
  answer: ObjectAnswer,
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    'accept-ranges': 'bytes',
    'last-modified': new Date(entry.modifiedAtMs).toUTCString(),
  }
  if (entry.etag !== null) headers.etag = `"${entry.etag}"`
  if (entry.versionId !== null) headers['x-amz-version-id'] = entry.versionId
  if (answer.status === 304) return headers
  headers['content-type'] = 'application/octet-stream'
  Object.assign(headers, request.asked.answerHeaders)
  headers['content-length'] = answer.length
  if (answer.status === 206) {
    const last = answer.offset + answer.length - 1
    headers['content-range'] = `bytes ${answer.offset}-${last}/${entry.sizeBytes}`
    // Without this header, clients that read part by part take the object for a single part.
    if (answer.parts !== undefined) headers['x-amz-mp-parts-count'] = answer.parts
  } else if (request.headers['x-amz-checksum-mode'] === 'ENABLED') {
    // Listings carry no checksums: use the copy's. A composite checksum (of parts) proves nothing to a client.
    const known = (request.facts ?? factsOfEntry(entry)).checksums.find(({ isComposite }) => !isComposite)
    const algorithm = SOURCE_CHECKSUMS.find((name) => name === known?.algorithm)
    if (known && algorithm) {
      headers[`x-amz-checksum-${algorithm}`] = known.value
      headers['x-amz-checksum-type'] = 'FULL_OBJECT'
    }
  }
  return headers
}
