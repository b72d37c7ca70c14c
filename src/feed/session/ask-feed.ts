import { DscError } from '../../failure/dsc-error.js'
import { connectToFeed } from './connect-to-feed.js'
import { formatSessionFrame, MESSAGE, readSessionFrames } from './wire.js'

/** Sends one question to the feed at `socketPath` and returns its answer as text ('' if it hangs up instead). */
export function askFeed(socketPath: string, type: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const frames = readSessionFrames('the feed', ({ type, payload }) => {
      if (type === MESSAGE.status) resolve(payload.toString())
    })
    const socket = connectToFeed(socketPath)
    socket.setTimeout(10_000, () => socket.destroy(new Error('no answer within 10 s')))
    socket.once('connect', () => socket.write(formatSessionFrame(type)))
    socket.on('data', (chunk) => {
      try {
        frames.push(chunk)
        socket.end()
      } catch (error) {
        reject(error)
        socket.destroy()
      }
    })
    socket.once('close', () => resolve(''))
    socket.once('error', (cause) =>
      reject(
        new DscError('FEED_GONE', `no feed answers on ${socketPath}: ${cause.message}`, {
          hint: 'dsc feed serve <dataset>, or --socket <path>',
          cause,
        }),
      ),
    )
  })
}
