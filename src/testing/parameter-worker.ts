// A worker of the kill tests: node parameter-worker.js <url> <rank> <steps> <sync|free>. Trains a toy model whose
// gradient is a pure function of (parameters, rank, step), so that any number of restarts must end in the same
// parameters. Prints one JSON line per event, for the test.
import { openParameterClient } from '../memory/params/parameter-client.js'
import { makeGradient, TOY_SLOTS, TOY_VALUES } from './toy-model.js'

const [url = '', rankText = '0', stepsText = '1', kind = 'sync'] = process.argv.slice(2)
const rank = Number(rankText)
const steps = Number(stepsText)
const say = (event: object) => process.stdout.write(`${JSON.stringify({ rank, ...event })}\n`)

const client = await openParameterClient({ url, rank, slots: TOY_SLOTS, values: TOY_VALUES })
const values = new Float32Array(client.layout.length)
let version = await client.pull()
if (kind === 'sync') await trainInStep()
else await trainFreely()
client.mirror.read(0, values.length, values)
say({ kind: 'done', version, values: [...values] })
client.close()

async function trainInStep(): Promise<void> {
  while (version < steps) {
    client.mirror.read(0, values.length, values)
    const step = version
    const state = await pushMaybeTwice(step)
    version = await client.pull({ atLeast: state === 'refused' ? 0 : version + 1 })
    say({ kind: 'version', version, epoch: client.epoch })
  }
}

async function trainFreely(): Promise<void> {
  let step = client.lastStep + 1
  while (step < steps) {
    version = await client.pull({ step })
    say({ kind: 'version', version, epoch: client.epoch })
    client.mirror.read(0, values.length, values)
    const state = await pushMaybeTwice(step)
    if (state === 'refused') {
      version = await client.pull()
      step = client.lastStep + 1
    } else step++
  }
  version = await client.pull()
}

/** Sends every third push twice, as after a lost answer. */
async function pushMaybeTwice(step: number): Promise<string> {
  const gradient = makeGradient(values, rank, step)
  const { state } = await client.push(gradient, step)
  if (step % 3 === 0) {
    const again = await client.push(gradient, step)
    say({ kind: 'again', step, first: state, state: again.state })
  }
  say({ kind: 'push', step, state, epoch: client.epoch })
  return state
}
