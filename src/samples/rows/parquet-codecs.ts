import * as zlib from 'node:zlib'
import type { Compressors } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const NOTHING = new Uint8Array(0)

/**
 * Every codec of Parquet but LZO, which nobody writes any more: gzip, brotli and zstd by Node itself, several times
 * as fast as in JavaScript; snappy and lz4, which Node does not have, by hyparquet-compressors. None gives more bytes
 * than the page says.
 */
export const PARQUET_CODECS: Compressors = {
  SNAPPY: compressors.SNAPPY!,
  LZ4: (input, length) => (length === 0 ? NOTHING : compressors.LZ4!(input, length)),
  // A page of nulls alone has no bytes, which hyparquet-compressors 1.1.2 takes for damage.
  LZ4_RAW: (input, length) => (length === 0 ? NOTHING : compressors.LZ4_RAW!(input, length)),
  ZSTD: compressors.ZSTD!,
  GZIP: (input, length) => zlib.gunzipSync(input, { maxOutputLength: roomFor(length) }),
  BROTLI: (input, length) => zlib.brotliDecompressSync(input, { maxOutputLength: roomFor(length) }),
  // Node has it from 22.15 on.
  ...('zstdDecompressSync' in zlib && {
    ZSTD: (input: Uint8Array, length: number) =>
      zlib.zstdDecompressSync(input, { maxOutputLength: roomFor(length) }),
  }),
}

/** Node wants at least one byte of room. */
const roomFor = (length: number) => Math.max(1, length)
