import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { unlessRejected } from '../../failure/unless-code.js'
import { connectToFeed, feedGone } from './connect-to-feed.js'
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
    socket.once('error', (cause) => reject(feedGone(socketPath, cause)))
  })
}

/** The answer of one feed. */
export interface FeedText {
  readonly socket: string
  readonly text: string
}

/**
 * Asks every feed that has a socket in `folder`: the one of `dsc feed serve`, and those that Python started. A feed that
 * was killed leaves its socket behind, which must not hide the others, so sockets that nobody answers at are left out.
 */
export async function askRunningFeeds(folder: string, type: number): Promise<readonly FeedText[]> {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => FEED_SOCKET.test(name)) : []
  const answers = await Promise.all(
    names.sort().map(async (name) => {
      const socket = join(folder, name)
      const text = await unlessRejected(['FEED_GONE'], askFeed(socket, type))
      return text === undefined ? [] : [{ socket, text }]
    }),
  )
  return answers.flat()
}

/** `feed.sock`, and what src/python/dsc/feed/launch.py calls its own. */
const FEED_SOCKET = /^feed(-[0-9a-f]{20})?\.sock$/
