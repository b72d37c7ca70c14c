// 28 public models in small sizes under plans at shares of their activations: counts bytes, and times nothing that is shown.
// --models: some of them, with commas
import { runPython } from './harness/processes.mjs'

export const benchmark = {
  options: { models: '' },
  smoke: { models: 'LCNet' },
  run(bench) {
    const models = bench.given.models.split(',').filter(Boolean)
    return runPython(bench, 'memory/public_models.py', models, { venv: 'scripts/trainers-venv.sh' })
  },
}
