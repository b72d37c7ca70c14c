import type { CliContext } from './cli/context.js'
import { readGlobalOptions, runProgram } from './cli/program.js'
import { createReporter } from './cli/reporter.js'
import { showFailure } from './cli/show-failure.js'
import { compose, readVersion } from './compose.js'
import { writeAll } from './platform/standard-streams.js'

/** Runs `dsc` with this process's arguments and sets its exit code. */
export async function main(): Promise<void> {
  const all = process.argv.slice(2)
  const separator = all.includes('--') ? all.indexOf('--') : all.length
  const argv = all.slice(0, separator)
  const globals = readGlobalOptions(argv)
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop.abort(name))
  const composed = compose(globals.configPath)
  const context: CliContext = {
    ...composed,
    report: createReporter({ ...globals, nowMs: Date.now }),
    signal: stop.signal,
    commandWords: all.slice(separator + 1),
    environment: process.env,
  }
  try {
    await runProgram(argv, context, readVersion())
  } catch (error) {
    context.report.progress(undefined)
    const failure = showFailure(error, globals.isJson)
    writeAll('stderr', `${failure.text}\n`)
    process.exitCode = failure.exitCode
  } finally {
    await composed.close()
  }
}
