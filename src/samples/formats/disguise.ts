/** A file that is not what its name says. */
export interface Disguise {
  /** The kind that the contents show, for a message. */
  readonly what: string
  /** The step that makes it readable. */
  readonly remedy: string
}

const PACKERS = [
  { magic: [0x1f, 0x8b], name: 'gzip', command: 'gzip -dc' },
  { magic: [0x42, 0x5a, 0x68], name: 'bzip2', command: 'bzip2 -dc' },
  { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], name: 'xz', command: 'xz -dc' },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], name: 'zstd', command: 'zstd -dc' },
  { magic: [0x50, 0x4b, 0x03, 0x04], name: 'a zip archive', command: 'unzip -p' },
] as const

const JUDGED_BYTES = 256
/** Fewer may be an accident. */
const JUDGED_LETTERS = 8
const UTF_16 = [
  [0xff, 0xfe],
  [0xfe, 0xff],
] as const

/** Recognizes a file by its first bytes, such as gzip under the name of what it packs; undefined: nothing known. */
export function findDisguise(first: Buffer): Disguise | undefined {
  const startsWith = (magic: readonly number[]) => magic.every((byte, i) => first[i] === byte)
  const packer = PACKERS.find(({ magic }) => startsWith(magic))
  if (packer)
    return {
      what: `this is ${packer.name}, whatever its name says`,
      remedy: `in the folder that the dataset comes from: ${packer.command} FILE > UNPACKED, for each file`,
    }
  return UTF_16.some(startsWith) ? inEncoding('UTF-16') : undefined
}

/** Recognizes UTF-16 without a byte order mark by the zero bytes of Latin letters, in the first bytes of a text. */
export function findWideText(first: Buffer): Disguise | undefined {
  const judged = first.subarray(0, JUDGED_BYTES)
  const zeros = [0, 0]
  for (const [at, byte] of judged.entries()) if (byte === 0) zeros[at % 2]!++
  const most = Math.floor(judged.length / 2)
  const [even = 0, odd = 0] = zeros.map((count) => count / most)
  if (most < JUDGED_LETTERS || Math.max(even, odd) < 0.9 || Math.min(even, odd) > 0.1) return undefined
  return inEncoding(odd > even ? 'UTF-16LE' : 'UTF-16BE')
}

function inEncoding(name: string): Disguise {
  return {
    what: 'this is text in UTF-16, and the feed reads UTF-8',
    remedy: `in the folder that the dataset comes from: iconv -f ${name} -t UTF-8 FILE > CONVERTED, for each file`,
  }
}
