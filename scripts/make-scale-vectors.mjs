// Writes fixtures/exchange/scale-vectors.json: what the TypeScript scale of a bucket of three parts does with outcomes.
// The Python client must do exactly the same, or ranks of one job could disagree.
import { writeFileSync } from 'node:fs'
import { advanceScale, FIRST_SCALE, planWire } from '../dist/exchange/plan/scale.js'

let state = 20240101
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) | 0
  return (state >>> 8) / 2 ** 24
}
const PARTS = 3
const sequences = Array.from({ length: 20 }, () => {
  let scale = FIRST_SCALE
  const levels = Array.from({ length: PARTS }, () => 2 ** Math.round(random() * 80 - 60))
  return Array.from({ length: 60 }, () => {
    const amaxes = levels.map((_, part) => {
      if (random() < 0.03) levels[part] *= 2 ** Math.round(random() * 60 - 30)
      return random() < 0.03 ? 0 : Math.fround(levels[part] * (random() < 0.1 ? 1 : 0.5 + random()))
    })
    const { wireType } = planWire(scale, { elements: 5000, tensors: PARTS })
    const drawn = random()
    const kind = drawn < 0.94 || wireType === 'fp32' ? 'clean' : drawn < 0.97 ? 'redone' : 'not finite'
    const outcome = { clean: { kind, wireType, amaxes }, redone: { kind, amaxes }, 'not finite': { kind } }[
      kind
    ]
    scale = advanceScale(scale, outcome)
    return { kind, wireType, amaxes, scale, wire: planWire(scale, { elements: 5000, tensors: PARTS }) }
  })
})
writeFileSync('fixtures/exchange/scale-vectors.json', `${JSON.stringify({ format: 2, sequences })}\n`)
