import { constants } from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import { unlessRejected } from '../failure/unless-code.js'
import { algorithmOf, formatDigest } from './digest.js'
import { digestRange } from './digest-range.js'
import { planParts } from './plan-parts.js'

/** Damage found in a file of a copy. */
export interface ObjectDamage {
  readonly problem: 'missing' | 'size' | 'content' | 'not-a-file'
  readonly expected: string
  readonly found: string
  /** Numbers of the wrong parts, if other parts are right. */
  readonly parts?: readonly number[]
}

/** The expected properties of a file. */
interface ExpectedObject {
  readonly sizeBytes: number
  /** Size of its parts, bytes; null for an object in one part. */
  readonly partBytes: number | null
  /** `algorithm:base64` by part number. */
  readonly digests: ReadonlyMap<number, string>
}

/** Compares a file with what is known of its object, part by part. Skips parts without a digest. */
export async function checkObject(
  path: string,
  object: ExpectedObject,
  signal: AbortSignal,
): Promise<ObjectDamage | undefined> {
  const stats = await unlessRejected(['ENOENT', 'ENOTDIR'], lstat(path))
  const expectedSize = `${object.sizeBytes} bytes`
  if (!stats) return { problem: 'missing', expected: expectedSize, found: 'nothing' }
  if (!stats.isFile()) return { problem: 'not-a-file', expected: 'a file', found: 'something else' }
  if (stats.size !== object.sizeBytes)
    return { problem: 'size', expected: expectedSize, found: `${stats.size} bytes` }
  const parts = planParts(object.sizeBytes, object.partBytes ?? Math.max(1, object.sizeBytes))
  const wrong: { readonly number: number; readonly expected: string; readonly found: string }[] = []
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  for (const part of parts) {
    const expected = object.digests.get(part.number)
    if (expected === undefined) continue
    const algorithm = algorithmOf(expected)
    const found = formatDigest(algorithm, await digestRange(file, part, { algorithm, signal }))
    if (found !== expected) wrong.push({ number: part.number, expected, found })
  }

  const first = wrong[0]
  if (!first) return undefined
  const { expected, found } = first
  return {
    problem: 'content',
    expected,
    found,
    ...(parts.length > 1 ? { parts: wrong.map((part) => part.number) } : {}),
  }
}
