import { connect, type Socket } from 'node:net'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import { type LinkProbe, median } from './plan/fit-link.js'
import { RENDEZVOUS_VERSION, sendMessage } from './rendezvous/messages.js'
import { PROBE_HEADER_BYTES } from './rendezvous/probe-echo.js'

const KIB = 1024
const MIB = 1024 * KIB
/** Measured message sizes, bytes. */
const PROBE_SIZES: readonly number[] = [1, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB]

/** Minimum and maximum repetitions of every size; its time budget decides in between. */
const MIN_REPEATS = 5
const MAX_REPEATS = 200

/**
 * Measures one-way times to `at`, where `dsc exchange serve` listens. A message goes out and one byte comes back; half
 * of the smallest round trip counts as the way back.
 */
export async function probeLink(
  at: { readonly host: string; readonly port: number },
  options: {
    readonly token?: string | undefined
    readonly onSize?: (bytes: number) => void
    /** Milliseconds to spend on a size, once it was measured 5 times. Default 500. */
    readonly sizeBudgetMs?: number
  } = {},
): Promise<LinkProbe[]> {
  const { sizeBudgetMs = 500 } = options
  const socket = await dial(at)
  using _ = atEndNow(() => socket.destroy())
  sendMessage(socket, { kind: 'probe', version: RENDEZVOUS_VERSION, token: options.token })
  const roundTrips: { readonly bytes: number; readonly seconds: number[] }[] = []
  for (const bytes of PROBE_SIZES) {
    options.onSize?.(bytes)
    const payload = Buffer.alloc(PROBE_HEADER_BYTES + bytes)
    payload.writeUInt32BE(bytes)
    await roundTrip(socket, payload, at) // the first one pays for a cold path
    const seconds: number[] = []
    const start = performance.now()
    while (
      seconds.length < MIN_REPEATS ||
      (seconds.length < MAX_REPEATS && performance.now() - start < sizeBudgetMs)
    ) {
      seconds.push(await roundTrip(socket, payload, at))
    }
    roundTrips.push({ bytes, seconds })
  }
  const backSeconds = median(roundTrips[0]?.seconds ?? [0]) / 2
  return roundTrips.map(({ bytes, seconds }) => ({
    bytes,
    // On a busy machine the way back may have taken longer than this whole round trip.
    seconds: seconds.map((value) => Math.max(0, value - backSeconds)),
  }))
}

async function roundTrip(
  socket: Socket,
  payload: Buffer,
  at: { readonly host: string; readonly port: number },
): Promise<number> {
  const start = performance.now()
  const answer = await new Promise<Buffer | undefined>((resolve) => {
    socket.once('data', resolve)
    socket.once('close', () => resolve(undefined))
    socket.write(payload)
  })
  socket.removeAllListeners('close')
  if (answer?.length !== 1) {
    const said = answer ? `: ${answer.toString('utf8').slice(0, 200).trim()}` : ''
    throw new DscError('USAGE', `${at.host}:${at.port} does not answer probes${said}`, {
      hint: 'run `dsc exchange serve` there, with the same token',
    })
  }
  return (performance.now() - start) / 1000
}

async function dial({ host, port }: { readonly host: string; readonly port: number }): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true })
  return await new Promise((resolve, reject) => {
    socket.once('connect', () => {
      socket.removeAllListeners('error')
      socket.on('error', () => {})
      resolve(socket)
    })
    socket.once('error', (cause) => {
      const hint = `run \`dsc exchange serve --listen ${host}:${port}\` there`
      reject(new DscError('PEER_LOST', `${host}:${port} does not answer: ${cause.message}`, { hint, cause }))
    })
  })
}
