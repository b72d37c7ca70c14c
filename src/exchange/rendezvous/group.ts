import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { judgeBrokenLink } from '../plan/broken-link.js'
import { findSuspect, type Patience, type RankHealth } from '../plan/suspect.js'
import { type JoinMessage, type RankMessage, type RendezvousMessage, sendMessage } from './messages.js'

/** One rank as the rendezvous sees it. */
interface Member {
  readonly socket: Socket
  readonly join: JoinMessage
  readonly rank: number
  lastBeatMs: number
  beat: Extract<RankMessage, { kind: 'beat' }>
  readyStep: number
  hasLeft: boolean
}

/** Where a rank says it is. */
type Place = Pick<Member['beat'], 'step' | 'bucket' | 'phase'>

/** A rank's report that it lost its connection to another. */
interface BrokenLink {
  readonly by: Member
  readonly other: Member
  readonly place: Place
  readonly reportedMs: number
  isOtherEndHeard: boolean
}

/** The ranks of one epoch, from the moment all are there until one is lost or all have left. */
export interface Group {
  readonly handle: (socket: Socket, message: RankMessage) => void
  readonly disconnected: (socket: Socket) => void
  /** Gives up on links that broke. Warns about, or gives up on, a rank that is silent or makes no progress. */
  readonly checkHealth: () => void
  readonly isOver: () => boolean
}

/**
 * Who asked for a rank has it; the others have the free ones, in the order in which they came. Where all asked, their
 * order counts: survivors of a larger job ask for the ranks they had.
 */
function inRankOrder<Joined extends { readonly join: JoinMessage }>(joined: readonly Joined[]): Joined[] {
  const unasked = joined.filter(({ join }) => join.rank === undefined)
  if (unasked.length === 0) return joined.toSorted((a, b) => a.join.rank! - b.join.rank!)
  const late = joined.filter(({ join }) => join.rank !== undefined && join.rank >= joined.length)
  const free = [...unasked, ...late]
  return joined.map((_, rank) => joined.find(({ join }) => join.rank === rank) ?? free.shift()!)
}

/** Numbers the ranks, tells everybody who is there, and watches over them. */
export function formGroup(
  joined: readonly { readonly socket: Socket; readonly join: JoinMessage }[],
  options: { readonly epoch: number; readonly patience: Patience; readonly nowMs: () => number },
): Group {
  const { epoch, patience, nowMs } = options
  const nonce = randomBytes(16).toString('hex')
  const members: Member[] = inRankOrder(joined).map(({ socket, join }, rank) => ({
    socket,
    join,
    rank,
    lastBeatMs: nowMs(),
    beat: { kind: 'beat', step: join.committedSteps },
    readyStep: 0,
    hasLeft: false,
  }))
  const peers = members.map(({ rank, join: { host, port, committedSteps } }) => ({
    rank,
    host,
    port,
    committedSteps,
  }))
  const brokenLinks: BrokenLink[] = []
  const warned = new Set<number>()
  let committedStep = 0
  let isOver = false
  const broadcast = (message: RendezvousMessage, except?: Socket) => {
    for (const { socket } of members) if (socket !== except) sendMessage(socket, message)
  }
  const lose = ({ rank, join, beat }: Member, reason: string, { step, bucket, phase }: Place = beat) => {
    if (isOver) return
    isOver = true
    broadcast({ kind: 'lost', rank, host: join.host, reason, step, bucket, phase })
  }
  const judge = ({ by, other, place, reportedMs, isOtherEndHeard }: BrokenLink) => {
    if (isOver || by.hasLeft || other.hasLeft) return
    const verdict = judgeBrokenLink({ forMs: nowMs() - reportedMs, isOtherEndHeard })
    if (verdict === 'rank') lose(other, `rank ${by.rank} on ${by.join.host} lost its connection to it`, place)
    if (verdict !== 'link') return
    isOver = true
    const [low, high] = by.rank < other.rank ? [by, other] : [other, by]
    const hosts: [string, string] = [low.join.host, high.join.host]
    broadcast({ kind: 'linkLost', ranks: [low.rank, high.rank], hosts, ...place })
  }
  for (const { socket, rank } of members) sendMessage(socket, { kind: 'welcome', epoch, rank, nonce, peers })
  return {
    handle(socket, message) {
      const member = members.find((candidate) => candidate.socket === socket)
      if (!member || isOver) return
      member.lastBeatMs = nowMs()
      for (const link of brokenLinks) link.isOtherEndHeard ||= link.other === member
      switch (message.kind) {
        case 'beat':
          member.beat = message
          break
        case 'ready':
          member.readyStep = message.step
          if (message.step > committedStep && members.every(({ readyStep }) => readyStep >= message.step)) {
            committedStep = message.step
            broadcast({ kind: 'commit', step: message.step })
          }
          break
        case 'unreachable': {
          const other = members[message.rank]
          const { step, bucket, phase } = message
          const place = { step, bucket, phase }
          if (other)
            brokenLinks.push({ by: member, other, place, reportedMs: nowMs(), isOtherEndHeard: false })
          break
        }
        case 'abort':
          isOver = true
          broadcast({ kind: 'aborted', message: message.message }, socket)
          break
        case 'leave':
          member.hasLeft = true
          broadcast({ kind: 'left', rank: member.rank, host: member.join.host, step: message.step }, socket)
          isOver = members.every(({ hasLeft }) => hasLeft)
          break
      }
    },
    disconnected(socket) {
      const member = members.find((candidate) => candidate.socket === socket)
      if (member && !member.hasLeft) lose(member, 'its connection to the rendezvous closed')
    },
    checkHealth() {
      for (const link of brokenLinks) judge(link)
      const health = members
        .filter(({ hasLeft }) => !hasLeft)
        .map(({ rank, lastBeatMs, beat }): RankHealth => {
          const silentMs = nowMs() - lastBeatMs
          const { waitingFor, waitingMs = 0 } = beat
          const waiting =
            waitingFor === undefined ? undefined : { forRank: waitingFor, sinceMs: waitingMs + silentMs }
          return { rank, silentMs, waiting }
        })
      const suspicion = isOver ? undefined : findSuspect(health, patience)
      const member = members[suspicion?.rank ?? -1]
      if (!suspicion || !member) return warned.clear()
      const { rank, forMs, reason, kind } = suspicion
      if (kind === 'lost') return lose(member, `it ${reason} for ${(forMs / 1000).toFixed(0)} s`)
      if (!warned.has(rank)) {
        warned.add(rank)
        broadcast({ kind: 'suspect', rank, host: member.join.host, forMs, reason }, member.socket)
      }
    },
    isOver: () => isOver,
  }
}
