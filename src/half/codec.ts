import assert from 'node:assert/strict'
import { DscError } from '../failure/dsc-error.js'
import { assembleModule } from '../wasm/assembler.js'
import { compileModule, findInstance, PAGE_BYTES } from '../wasm/runtime.js'
import { INT8_KERNELS } from './int8-kernels.js'
import { KERNELS } from './kernels.js'

type Convert = (source: number, target: number, count: number, factor: number) => void
type Add = (target: number, source: number, count: number, factor: number) => void
type Accumulate = (target: number, source: number, count: number) => void
type EncodeInt8 = (source: number, target: number, count: number, factor: number, random: number) => void
type Maximum = (source: number, result: number, count: number) => void

interface Exports {
  readonly encodeHalf: Convert
  readonly decodeHalf: Convert
  readonly encodeBrain: Convert
  readonly decodeBrain: Convert
  readonly scaleFloat: Convert
  readonly addHalf: Add
  readonly addBrain: Add
  readonly addFloat: Add
  readonly accumulateHalf: Accumulate
  readonly accumulateBrain: Accumulate
  readonly encodeInt8: EncodeInt8
  readonly decodeInt8: Convert
  readonly accumulateInt8: Add
  readonly maximum16: Maximum
  readonly maximum32: Maximum
}

/** Bits of an infinite float without sign: those of NaN are above it. */
export const INFINITE_FLOAT_BITS = 0x7f800000

/** Maximum size of a WebAssembly memory. */
export const MEMORY_LIMIT_BYTES = 4 * 1024 ** 3 - PAGE_BYTES

let compiled: object | undefined

/**
 * Half-precision arithmetic on one memory of its own. Addresses are byte offsets into it, multiples of 16;
 * counts are multiples of 8. Sources and targets of conversions may not overlap.
 */
export interface Codec {
  readonly memory: ArrayBuffer
  /** Reserves zeroed bytes, aligned to 16. There is no free: a session allocates once. */
  readonly allocate: (bytes: number) => number
  readonly kernels: Exports
  /** Largest magnitude, as its bits without sign, among `count` 2- or 4-byte values. ≥ inf's bits: not finite. */
  readonly maximumBits: (address: number, count: number, bytesPerValue: 2 | 4) => number
}

/**
 * Opens a codec whose memory holds `capacityBytes` and a little more; pages are allocated when touched. Throws USAGE if
 * the engine cannot provide such a memory.
 */
export function openCodec(capacityBytes: number): Codec {
  assert.ok(capacityBytes >= 0 && capacityBytes <= MEMORY_LIMIT_BYTES, `${capacityBytes} bytes`)
  compiled ??= compileModule(assembleModule([...KERNELS, ...INT8_KERNELS]))
  const instance = findInstance<Exports>(compiled, capacityBytes + 32)
  if (instance === undefined)
    throw new DscError('USAGE', `found no memory for ${capacityBytes} bytes of half precision`, {
      hint: 'raise `ulimit -v`, if it is set: beside its bytes, such a memory takes 10 GB of addresses',
    })
  const { buffer, exports: kernels } = instance
  let used = 16 // the first 16 bytes hold the result of a maximum
  const lanes16 = new Uint16Array(buffer, 0, 8)
  const lanes32 = new Uint32Array(buffer, 0, 4)
  return {
    memory: buffer,
    kernels,
    allocate(bytes) {
      const address = used
      used += Math.ceil(bytes / 16) * 16
      assert.ok(used <= buffer.byteLength, `${used} of ${buffer.byteLength} bytes`)
      return address
    },
    maximumBits(address, count, bytesPerValue) {
      if (bytesPerValue === 2) kernels.maximum16(address, 0, count)
      else kernels.maximum32(address, 0, count)
      return Math.max(...(bytesPerValue === 2 ? lanes16 : lanes32))
    },
  }
}
