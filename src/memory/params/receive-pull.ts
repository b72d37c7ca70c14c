import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { openFrame } from '../../frames/frame.js'
import { widenParameters } from './half-parameters.js'
import { readingOf } from './message.js'
import type { Mirror } from './mirror.js'
import type { ParameterLayout } from './plan/parameter-layout.js'

const newsSchema = z.object({
  crc: z.number().int(),
  version: z.number().int(),
  epoch: z.number().int(),
  lastStep: z.number().int(),
  /** Indices of the parameters that follow; absent: all of them, in the order of the layout. */
  changed: z.array(z.number().int()).optional(),
  /** Whether slots that workers hold as halves are sent as halves. */
  halves: z.boolean().default(false),
})

/** The head of a pull. */
export type PullNews = z.infer<typeof newsSchema>

/**
 * Receives a pull straight into the mirror's inactive half, chunk by chunk, and activates it once it is complete and
 * its checksum matches. If this rejects, readers keep the half they have, and the inactive one is worthless.
 */
export async function receivePull(
  stream: AsyncIterable<Buffer>,
  mirror: Mirror,
  layout: ParameterLayout,
): Promise<PullNews> {
  const { head, payload } = await openFrame(stream, readingOf(damaged))
  const news = newsSchema.parse(head)
  const source = payload[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  const ranges = news.changed
    ? news.changed.map((index) => layout.slots[index]!)
    : [{ offset: 0, length: layout.length, type: 'f32' as const }]
  await mirror.update(news.version, async (half) => {
    let crc = 0
    const fill = async (target: Uint8Array) => {
      let at = 0
      while (at < target.length) {
        if (rest.length === 0) {
          const { done, value } = await source.next()
          if (done) throw damaged('has too few values')
          rest = value
        }
        const part = rest.subarray(0, target.length - at)
        crc = crc32(part, crc)
        target.set(part, at)
        at += part.length
        rest = rest.subarray(part.length)
      }
    }
    for (const { offset, length, type = 'f32' } of ranges) {
      if (type === 'f32' || !news.halves) {
        await fill(new Uint8Array(half.buffer, half.byteOffset + 4 * offset, 4 * length))
        continue
      }
      const narrow = new Uint16Array(length)
      await fill(new Uint8Array(narrow.buffer))
      widenParameters(narrow, type, half.subarray(offset, offset + length))
    }
    if (crc !== news.crc) throw damaged(`has the checksum ${crc}, not ${news.crc}`)
  })
  return news
}

function damaged(problem: string): Error {
  return new DscError('PARAMS_UNREACHABLE', `a pull arrived damaged: it ${problem}`)
}
