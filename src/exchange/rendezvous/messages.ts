import type { Socket } from 'node:net'
import { z } from 'zod'
import { count } from '../../answers/fields.js'
import { sendLine } from '../../frames/lines.js'

/** Version of the rendezvous's messages: JSON, one per line. Raise it for a change that old ranks cannot read. */
export const RENDEZVOUS_VERSION = 4

const place = {
  step: count,
  bucket: count.optional(),
  phase: z.string().optional(),
}

/** Two levels: the name of a rank's host, and the path at which the others of that host open its memory. */
const shared = {
  hostKey: z.string().max(200).optional(),
  memory: z
    .string()
    .regex(/^\/proc\/\d+\/fd\/\d+$/)
    .optional(),
}

/** Schema of a rank's messages. */
export const rankMessageSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('join'),
    version: z.number(),
    token: z.string().optional(),
    job: z.string(),
    ranks: z.int().min(1).max(65535),
    rank: count.optional(),
    wire: z.string(),
    planHash: z.string(),
    host: z.string(),
    port: count,
    committedSteps: count,
    ...shared,
  }),
  z.object({ kind: z.literal('probe'), version: z.number(), token: z.string().optional() }),
  z.object({
    kind: z.literal('beat'),
    ...place,
    waitingFor: count.optional(),
    waitingMs: z.number().nonnegative().optional(),
  }),
  z.object({ kind: z.literal('ready'), step: count }),
  z.object({ kind: z.literal('unreachable'), rank: count, ...place }),
  z.object({ kind: z.literal('abort'), message: z.string() }),
  z.object({ kind: z.literal('leave'), step: count }),
])
/** A parsed message of a rank. */
export type RankMessage = z.infer<typeof rankMessageSchema>
/** The message with which a rank introduces itself. */
export type JoinMessage = Extract<RankMessage, { kind: 'join' }>

const peer = z.object({ rank: count, host: z.string(), port: count, committedSteps: count, ...shared })

/** Schema of the rendezvous's messages. */
export const rendezvousMessageSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('welcome'),
    epoch: count,
    rank: count,
    nonce: z.string(),
    peers: z.array(peer),
  }),
  z.object({ kind: z.literal('refused'), reason: z.enum(['mismatch', 'denied']), message: z.string() }),
  /** A rank that does not fit tried to join; waiting ranks go on waiting. */
  z.object({ kind: z.literal('turnedAway'), message: z.string() }),
  z.object({ kind: z.literal('commit'), step: count }),
  z.object({
    kind: z.literal('suspect'),
    rank: count,
    host: z.string(),
    forMs: z.number(),
    reason: z.string(),
  }),
  z.object({ kind: z.literal('lost'), rank: count, host: z.string(), reason: z.string(), ...place }),
  z.object({
    kind: z.literal('linkLost'),
    ranks: z.tuple([count, count]),
    hosts: z.tuple([z.string(), z.string()]),
    ...place,
  }),
  z.object({ kind: z.literal('aborted'), message: z.string() }),
  z.object({ kind: z.literal('left'), rank: count, host: z.string(), step: count }),
])
/** A parsed message of the rendezvous. */
export type RendezvousMessage = z.infer<typeof rendezvousMessageSchema>

/** Sends one message. A closed connection swallows it: its `close` event reports that. */
export function sendMessage(socket: Socket, message: RankMessage | RendezvousMessage): void {
  sendLine(socket, message)
}
