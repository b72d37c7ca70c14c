/**
 * Cyclic redundancy checks that node:zlib does not have (it has CRC-32), eight bytes per step by tables.
 * Reflected polynomials, start and end inverted, as S3 defines them.
 */
const CRC32C_POLYNOMIAL = 0x82f63b78
const CRC64NVME_POLYNOMIAL = 0x9a6c9329ac4bc9b5n

let crc32cTables: Uint32Array[] | undefined
let crc64Tables: { readonly low: Uint32Array; readonly high: Uint32Array } | undefined

/** The CRC-32C of what came before `previous` (0 at the start) followed by `data`. */
export function updateCrc32c(data: Uint8Array, previous: number): number {
  crc32cTables ??= makeCrc32cTables()
  const [t0, t1, t2, t3, t4, t5, t6, t7] = crc32cTables as [
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
  ]
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const stepsEnd = data.length - (data.length % 8)
  let crc = ~previous
  let at = 0
  for (; at < stepsEnd; at += 8) {
    const x = crc ^ view.getInt32(at, true)
    const y = view.getInt32(at + 4, true)
    crc =
      t7[x & 255]! ^
      t6[(x >>> 8) & 255]! ^
      t5[(x >>> 16) & 255]! ^
      t4[x >>> 24]! ^
      t3[y & 255]! ^
      t2[(y >>> 8) & 255]! ^
      t1[(y >>> 16) & 255]! ^
      t0[y >>> 24]!
  }
  for (; at < data.length; at += 1) crc = t0[(crc ^ data[at]!) & 255]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** The two halves of a CRC-64/NVME; both 0 at the start. */
export interface Crc64 {
  low: number
  high: number
}

/** Carries `state` on over `data`. */
export function updateCrc64nvme(data: Uint8Array, state: Crc64): void {
  crc64Tables ??= makeCrc64Tables()
  const { low: tl, high: th } = crc64Tables
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const stepsEnd = data.length - (data.length % 8)
  let low = ~state.low
  let high = ~state.high
  let at = 0
  for (; at < stepsEnd; at += 8) {
    const x = low ^ view.getInt32(at, true)
    const y = high ^ view.getInt32(at + 4, true)
    const a = 1792 | (x & 255)
    const b = 1536 | ((x >>> 8) & 255)
    const c = 1280 | ((x >>> 16) & 255)
    const d = 1024 | (x >>> 24)
    const e = 768 | (y & 255)
    const f = 512 | ((y >>> 8) & 255)
    const g = 256 | ((y >>> 16) & 255)
    const h = y >>> 24
    low = tl[a]! ^ tl[b]! ^ tl[c]! ^ tl[d]! ^ tl[e]! ^ tl[f]! ^ tl[g]! ^ tl[h]!
    high = th[a]! ^ th[b]! ^ th[c]! ^ th[d]! ^ th[e]! ^ th[f]! ^ th[g]! ^ th[h]!
  }
  for (; at < data.length; at += 1) {
    const index = (low ^ data[at]!) & 255
    low = (low >>> 8) | (high << 24)
    high = (high >>> 8) ^ th[index]!
    low ^= tl[index]!
  }
  state.low = ~low >>> 0
  state.high = ~high >>> 0
}

function makeCrc32cTables(): Uint32Array[] {
  const tables = Array.from({ length: 8 }, () => new Uint32Array(256))
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ CRC32C_POLYNOMIAL : crc >>> 1
    tables[0]![byte] = crc
  }
  for (let byte = 0; byte < 256; byte += 1)
    for (let row = 1; row < 8; row += 1) {
      const before = tables[row - 1]![byte]!
      tables[row]![byte] = tables[0]![before & 255]! ^ (before >>> 8)
    }
  return tables
}

function makeCrc64Tables() {
  const rows = new BigUint64Array(8 * 256)
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = BigInt(byte)
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ CRC64NVME_POLYNOMIAL : crc >> 1n
    rows[byte] = crc
  }
  for (let at = 256; at < rows.length; at += 1) {
    const before = rows[at - 256]!
    rows[at] = rows[Number(before & 255n)]! ^ (before >> 8n)
  }
  return {
    low: Uint32Array.from(rows, (crc) => Number(crc & 0xffffffffn)),
    high: Uint32Array.from(rows, (crc) => Number(crc >> 32n)),
  }
}
