/**
 * Extensions for types that MessagePack lacks. `decimal`: the number as ASCII text. `date`: int32, days since 1970.
 * `time` and `timestamp`: one byte (bits 0 and 1: 0 ms, 1 µs, 2 ns; bit 2: the timestamp is UTC), then int64, since
 * midnight or since 1970. All big endian.
 */
export const ROW_EXTENSIONS = { decimal: 1, date: 2, time: 3, timestamp: 4 } as const

/** Flag in the byte before a time: it is UTC. */
export const UTC_FLAG = 4
