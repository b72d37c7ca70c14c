import { connect } from 'node:net'
import type { Leased } from '../../cache/api/node-api.js'
import type { LeaseRequest } from '../../model/lease.js'
import { findDoorFault } from './door-socket.js'
import { type DoorLine, pathOfOperation } from './door-wire.js'

/** More than any answer about one copy. */
const MAX_ANSWER_BYTES = 1024 * 1024
const PATIENCE_MS = 5000

/**
 * Asks the service for a lease on a ready copy and nothing else, in one turn, for the short way of `dsc prepare`:
 * loading node:http would take a fifth of it. Undefined for every other answer: the whole program asks again.
 */
export async function takeReadyAtDoor(
  path: string,
  asked: { readonly name: string; readonly lease: LeaseRequest },
): Promise<Leased | undefined> {
  if (findDoorFault(path) !== undefined) return undefined
  const body = JSON.stringify(asked)
  // An answer in HTTP/1.0 has no chunks: its body goes on to the end.
  const answer = await exchange(
    path,
    `POST ${pathOfOperation('takeReady')} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  const [head = '', rest = ''] = answer.split('\r\n\r\n', 2)
  if (!/^HTTP\/1\.\d 200 /.test(head)) return undefined
  const line = JSON.parse(rest.trim().split('\n').at(-1)!) as DoorLine
  return 'result' in line ? ((line.result ?? undefined) as Leased | undefined) : undefined
}

function exchange(path: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    let bytes = 0
    const socket = connect(path, () => socket.write(request))
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer')))
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > MAX_ANSWER_BYTES) socket.destroy(new Error('the answer is too long'))
    })
    socket.once('error', reject)
    socket.once('end', () => resolve(Buffer.concat(pieces).toString('utf8')))
  })
}
