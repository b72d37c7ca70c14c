import { type Codec, openCodec } from '../../half/codec.js'

/** Elements converted at a time. */
const CHUNK = 1 << 18

/** Room for one chunk as floats and as halves, at these byte offsets in `memory`. */
interface Buffers extends Pick<Codec, 'memory' | 'kernels'> {
  readonly floats: number
  readonly halves: number
}

let opened: Buffers | undefined

/**
 * Calls `convert` for each chunk of `length` elements, with the chunk's first element, its number of elements, and the
 * memory to convert it in. `rounded` is that number rounded up to the eight that the kernels take at a time.
 */
export function convertInChunks(
  length: number,
  convert: (at: number, count: number, buffers: Buffers & { readonly rounded: number }) => void,
): void {
  const buffers = open()
  for (let at = 0; at < length; at += CHUNK) {
    const count = Math.min(CHUNK, length - at)
    convert(at, count, { ...buffers, rounded: Math.ceil(count / 8) * 8 })
  }
}

function open(): Buffers {
  if (!opened) {
    const codec = openCodec(6 * CHUNK)
    const { memory, kernels } = codec
    opened = { memory, kernels, floats: codec.allocate(4 * CHUNK), halves: codec.allocate(2 * CHUNK) }
  }
  return opened
}
