/** A file that is not what its name says. */
export interface Disguise {
  /** `gzip, whatever its name says`. */
  readonly what: string
  /** What makes it readable. */
  readonly remedy: string
}

const PACKERS = [
  { magic: [0x1f, 0x8b], name: 'gzip', command: 'gzip -dc' },
  { magic: [0x42, 0x5a, 0x68], name: 'bzip2', command: 'bzip2 -dc' },
  { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], name: 'xz', command: 'xz -dc' },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], name: 'zstd', command: 'zstd -dc' },
  { magic: [0x50, 0x4b, 0x03, 0x04], name: 'a zip archive', command: 'unzip -p' },
] as const

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
  if (UTF_16.some(startsWith))
    return {
      what: 'this is text in UTF-16, and the feed reads UTF-8',
      remedy:
        'in the folder that the dataset comes from: iconv -f UTF-16 -t UTF-8 FILE > CONVERTED, for each file',
    }
  return undefined
}
