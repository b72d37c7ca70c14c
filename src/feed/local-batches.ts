import type { BatchReader } from './batch-reader.js'
import type { StreamShape } from './feeder.js'
import type { OpenedFeeder } from './open-feeder.js'

/** Batches that a process holds at once: one is copied while the next one is made. */
const LEASES = 2

/** The batches of a rank out of a feeder of this process; it closes the feeder. */
export async function openLocalBatches(
  opened: OpenedFeeder,
  shape: StreamShape,
  isSkipping: boolean,
): Promise<BatchReader> {
  const { feeder, table, arenaFile, seed, orderKind, mix } = opened
  let stream: ReturnType<typeof feeder.openStream>
  try {
    stream = feeder.openStream(shape, LEASES)
  } catch (error) {
    await opened.close()
    throw error
  }
  const { sequence } = stream
  return {
    identity: {
      fingerprint: table.fingerprint,
      n: table.count,
      order: orderKind,
      seed,
      last: shape.last,
      mix,
    },
    stepsPerEpoch: sequence.stepsPerEpoch,
    batchesPerEpoch: sequence.batchesPerEpoch,
    globalBatch: sequence.globalBatch,
    start: (epoch, step) => stream.start(epoch, step),
    async read(epoch, step) {
      const batch = await stream.read(epoch, step, isSkipping)
      try {
        const items = batch.slots.map((slot, i) => {
          const data = Buffer.allocUnsafe(table.lengths[slot.sample]!)
          arenaFile.read(data, batch.offsets[i]!)
          const isPadded = slot.position >= sequence.options.sampleCount
          return { id: slot.sample, name: table.nameOf(slot.sample), data, isPadded }
        })
        return { items, lost: batch.lost }
      } finally {
        stream.release(batch)
      }
    },
    close: opened.close,
  }
}
