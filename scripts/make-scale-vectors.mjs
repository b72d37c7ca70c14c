// Writes fixtures/exchange/scale-vectors.json: what the TypeScript scale does with a list of outcomes.
// The Python client must do exactly the same, or ranks of one job could disagree.
import { writeFileSync } from 'node:fs'
import { advanceScale, FIRST_SCALE, planWire } from '../dist/exchange/plan/scale.js'

let state = 20240101
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) | 0
  return (state >>> 8) / 2 ** 24
}
const sequences = Array.from({ length: 20 }, () => {
  let scale = FIRST_SCALE
  let level = 2 ** Math.round(random() * 80 - 60)
  return Array.from({ length: 60 }, () => {
    if (random() < 0.05) level *= 2 ** Math.round(random() * 16 - 8)
    const amax = random() < 0.05 ? 0 : Math.fround(random() < 0.1 ? level : level * (0.5 + random()))
    const drawn = random()
    const kind = drawn < 0.92 ? 'clean' : drawn < 0.96 ? 'redone' : 'not finite'
    scale = advanceScale(scale, kind === 'not finite' ? { kind } : { kind, amax })
    return { kind, amax, scale, wire: planWire(scale, { elements: 5000, tensors: 2 }) }
  })
})
writeFileSync('fixtures/exchange/scale-vectors.json', `${JSON.stringify({ format: 1, sequences })}\n`)
