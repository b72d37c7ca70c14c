/** Objects above this size are fetched in parts, bytes. */
export const WHOLE_OBJECT_BYTES = 24 * 1024 * 1024
/** Part size of a large object unless its upload parts suit, bytes. */
export const PART_BYTES = 16 * 1024 * 1024
/** Part sizes among nodes that take parts from each other and pass a part on once they have all of it, bytes. */
const SHARED_PART_BYTES = { least: 1024 * 1024, most: 4 * 1024 * 1024 }
/** With fewer parts some nodes have much to pass on and others nothing (`npm run bench -- swarm-model`). */
const SHARED_PARTS = 256
const MIN_PART_BYTES = 5 * 1024 * 1024
const MAX_PART_BYTES = 64 * 1024 * 1024

/** A range of an object, fetched and recorded on its own. */
export interface Part {
  readonly number: number // from 0
  readonly offset: number
  readonly length: number
}

/**
 * The size of an object's parts in bytes. Upload parts of a usable size are kept, because then the checksums of the
 * parts verify a composite checksum or a multipart etag without a second pass over the file.
 */
export function planPartBytes(
  sizeBytes: number,
  uploadPartBytes: number | null,
  usualBytes = PART_BYTES,
): number {
  if (sizeBytes <= WHOLE_OBJECT_BYTES) return Math.max(1, sizeBytes)
  if (uploadPartBytes !== null && uploadPartBytes >= MIN_PART_BYTES && uploadPartBytes <= MAX_PART_BYTES)
    return uploadPartBytes
  return usualBytes
}

/** The size of parts that nodes take from each other, for a dataset of `datasetBytes`: a power of two, bytes. */
export function planSharedPartBytes(datasetBytes: number): number {
  const { least, most } = SHARED_PART_BYTES
  let bytes = least
  while (bytes < most && bytes * SHARED_PARTS < datasetBytes) bytes *= 2
  return bytes
}

const MIB = 1024 * 1024
/** Upload part sizes of common tools: AWS CLI and boto 8, SDKs 5, mc 16, s5cmd 50, rclone 5, Java 8, others. */
const USUAL_UPLOAD_PARTS = [8, 5, 16, 50, 64, 32, 10, 15, 20, 25, 100, 128].map(
  (mebibytes) => mebibytes * MIB,
)

/** The likeliest part size of an object of `sizeBytes` in `parts` upload parts, bytes; null when none fits. */
export function guessUploadPartBytes(sizeBytes: number, parts: number): number | null {
  return USUAL_UPLOAD_PARTS.find((bytes) => Math.ceil(sizeBytes / bytes) === parts) ?? null
}

/** Number of upload parts according to an object's etag; 1 for any other etag. */
export function countUploadParts(etag: string | null): number {
  return Number(/-(\d+)$/.exec(etag ?? '')?.[1] ?? 1)
}

/** The parts of an object of `sizeBytes`, in order. An empty object has one empty part. */
export function planParts(sizeBytes: number, partBytes: number): Part[] {
  const parts: Part[] = []
  let offset = 0
  do {
    const length = Math.min(partBytes, sizeBytes - offset)
    parts.push({ number: parts.length, offset, length })
    offset += length
  } while (offset < sizeBytes)
  return parts
}
