// A worker of the kill tests: node parameter-worker.js <url> <rank> <steps>. Trains a toy model whose gradient is
// a pure function of (parameters, rank, step), so that any number of restarts must end in the same parameters.
// Prints one JSON line per event; the test reads them.
import { openParameterClient } from '../memory/params/client.js'
import { makeGradient, TOY_SLOTS, TOY_VALUES } from './toy-model.js'

const [url = '', rankText = '0', stepsText = '1'] = process.argv.slice(2)
const rank = Number(rankText)
const steps = Number(stepsText)
const say = (event: object) => process.stdout.write(`${JSON.stringify({ rank, ...event })}\n`)

const client = await openParameterClient({ url, rank, slots: TOY_SLOTS, values: TOY_VALUES })
const values = new Float32Array(client.layout.length)
let version = await client.pull()
while (version < steps) {
  client.mirror.read(0, values.length, values)
  const step = version
  const gradient = makeGradient(values, rank, step)
  const result = await client.push(gradient, step)
  // Every third push is sent twice, as after a lost answer.
  if (step % 3 === 0) {
    const again = await client.push(gradient, step)
    say({ kind: 'again', step, state: again.state })
  }
  say({ kind: 'push', step, state: result.state, epoch: client.epoch })
  version = await client.pull({ atLeast: result.state === 'refused' ? 0 : version + 1 })
  say({ kind: 'version', version, epoch: client.epoch })
}
client.mirror.read(0, values.length, values)
say({ kind: 'done', version, values: [...values] })
client.close()
