import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { z } from 'zod'
import type { World } from './world.js'

/** Runs commands with `--json` and compares their output with a group of schemas; tracks which it has tried. */
export class OutputChecker<Outputs extends Readonly<Record<string, z.ZodType>>> {
  readonly #tried = new Set<keyof Outputs>()
  readonly #outputs: Outputs

  constructor(outputs: Outputs) {
    this.#outputs = outputs
  }

  /** Runs a command that ends, with exit code `code` (default 0). */
  async run(world: Pick<World, 'dsc'>, output: keyof Outputs, words: readonly string[], code = 0) {
    const finished = await world.dsc(...words, '--json')
    assert.equal(finished.code, code, `${words.join(' ')}: ${finished.stderr}`)
    return this.check(output, finished.stdout)
  }

  /** Starts a serving command, passes its first output to `use`, then ends it. */
  async serve(
    world: Pick<World, 'start'>,
    output: keyof Outputs,
    words: readonly string[],
    use: (said: Record<string, unknown>) => Promise<void> = async () => {},
  ) {
    const running = world.start([...words, '--json'])
    try {
      const [line] = await once(createInterface({ input: running.process.stdout! }), 'line')
      await use(this.check(output, line) as Record<string, unknown>)
    } finally {
      running.process.kill('SIGTERM')
      await running.finished
    }
  }

  /** Compares `printed` with the schema of `output`, and returns it parsed from JSON. */
  check(output: keyof Outputs, printed: string): unknown {
    const value: unknown = JSON.parse(printed)
    const { error } = this.#outputs[output]!.safeParse(value)
    assert.equal(error, undefined, `${String(output)} printed ${printed}`)
    this.#tried.add(output)
    return value
  }

  /** Fails if an output of the group was not tried. */
  end(): void {
    assert.deepEqual(
      Object.keys(this.#outputs).filter((output) => !this.#tried.has(output)),
      [],
    )
  }
}
