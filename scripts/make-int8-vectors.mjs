// Writes fixtures/exchange/int8-vectors.json: gradients of some ranks, and the means that the engine made of them with
// int8 on the wire. The Python hook is held to the same bits.
import { writeFileSync } from 'node:fs'
import { joinExchange } from '../dist/exchange/join-exchange.js'
import { openRendezvous } from '../dist/exchange/rendezvous/open-rendezvous.js'

let state = 20240101
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) | 0
  return (state >>> 8) / 2 ** 24
}
const base64 = (floats) => Buffer.from(floats.buffer).toString('base64')

const cases = []
for (const ranks of [2, 3]) {
  const sizes = [300, 1, 256, 7]
  const gradients = Array.from({ length: ranks }, () =>
    sizes.map((size) => {
      const magnitude = 2 ** Math.round(random() * 200 - 120)
      return Float32Array.from({ length: size }, () => (random() - 0.5) * magnitude)
    }),
  )
  const given = gradients.map((rank) => rank.map(base64))
  const buckets = [{ tensors: sizes.map((elements, at) => ({ name: `${at}`, elements })) }]
  const plan = { hash: 'vectors', ranks, wire: 'int8', buckets }
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const sessions = await Promise.all(gradients.map((_, rank) => joinExchange({ rendezvous, plan, rank })))
  await Promise.all(
    sessions.map(async (session, rank) => {
      const step = session.beginStep()
      for (const [at, gradient] of gradients[rank].entries()) await step.add(`${at}`, gradient)
      await step.commit()
    }),
  )
  for (const session of sessions) await session.close()
  await rendezvous.close()
  cases.push({ sizes, gradients: given, means: gradients[0].map(base64) })
}
writeFileSync('fixtures/exchange/int8-vectors.json', `${JSON.stringify({ format: 1, cases })}\n`)
