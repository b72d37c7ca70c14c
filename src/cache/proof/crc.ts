import { WebAssembly } from '../../wasm/runtime.js'
import { assembleCrcModule, STEP_BYTES } from './assemble-crc-module.js'
import { CRC_POLYNOMIALS, type CrcAlgorithm } from './crc-polynomials.js'

/** Carries a CRC on over the bytes of its memory `from` to `to`. */
interface CrcModule {
  readonly step: (crc: bigint, from: number, to: number) => bigint
}

const TABLE_BYTES = STEP_BYTES * 256 * BigUint64Array.BYTES_PER_ELEMENT
/** Bytes copied into the module's memory at once: few enough to stay in the processor's cache. */
const WINDOW_BYTES = 64 * 1024

/** CRC-32 is in node:zlib. */
type Computed = Exclude<CrcAlgorithm, 'crc32'>

/** Carries a check on: the CRC of what came before `previous` (0 at the start) followed by `data`. */
type UpdateCrc = (data: Uint8Array, previous: bigint) => bigint

const made = new Map<Computed, UpdateCrc>()

/** Gives the function for an algorithm, which takes about a millisecond the first time. */
export function getCrc(algorithm: Computed): UpdateCrc {
  let update = made.get(algorithm)
  if (update === undefined) {
    update = makeCrc(algorithm)
    made.set(algorithm, update)
  }
  return update
}

function makeCrc(algorithm: Computed): UpdateCrc {
  const { bits, polynomial } = CRC_POLYNOMIALS[algorithm]
  const ones = (1n << BigInt(bits)) - 1n
  const memory = new WebAssembly.Memory({ initial: (TABLE_BYTES + WINDOW_BYTES) / 65_536 + 1 })
  const module = new WebAssembly.Module(assembleCrcModule())
  const { step } = new WebAssembly.Instance(module, { env: { memory } }).exports as CrcModule
  const tables = new BigUint64Array(memory.buffer, 0, STEP_BYTES * 256)
  fillTables(tables, polynomial)
  const window = new Uint8Array(memory.buffer, TABLE_BYTES, WINDOW_BYTES)
  return (data, previous) => {
    let crc = previous ^ ones
    const stepsEnd = data.length - (data.length % STEP_BYTES)
    for (let at = 0; at < stepsEnd; at += WINDOW_BYTES) {
      const end = Math.min(at + WINDOW_BYTES, stepsEnd)
      window.set(data.subarray(at, end))
      crc = BigInt.asUintN(64, step(crc, TABLE_BYTES, TABLE_BYTES + end - at))
    }
    for (let at = stepsEnd; at < data.length; at += 1)
      crc = tables[Number(crc & 255n) ^ data[at]!]! ^ (crc >> 8n)
    return crc ^ ones
  }
}

/** Table 0 has the CRC of each byte, table n that of the byte and n zero bytes after it. */
function fillTables(tables: BigUint64Array, polynomial: bigint): void {
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = BigInt(byte)
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ polynomial : crc >> 1n
    tables[byte] = crc
  }
  for (let at = 256; at < tables.length; at += 1) {
    const before = tables[at - 256]!
    tables[at] = tables[Number(before & 255n)]! ^ (before >> 8n)
  }
}
