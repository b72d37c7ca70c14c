// Public models under plans at shares of their activations, into docs/benchmarks/memory-models.md: for memory.mjs.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'

/** Trains every model at every share; needs the environment of scripts/trainers-venv.sh, which it makes. */
export function publicModels() {
  const venv = execFileSync('bash', ['scripts/trainers-venv.sh'], { encoding: 'utf8' }).trim()
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }
  const page = execFileSync(`${venv}/bin/python`, ['scripts/bench/memory_models.py'], options)
  writeFileSync('docs/benchmarks/memory-models.md', page)
  process.stdout.write(page)
}
