import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import type { CliContext } from './cli/context.js'
import { readGlobalOptions, runProgram } from './cli/program.js'
import { createReporter } from './cli/reporter.js'
import { showFailure } from './cli/show-failure.js'
import { DscError } from './failure/dsc-error.js'

/** Runs `dsc` with this process's arguments and sets its exit code. The only place that names concrete adapters. */
export async function main(): Promise<void> {
  const argv = process.argv.slice(2)
  const globals = readGlobalOptions(argv)
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop.abort(name))
  const context: CliContext = {
    report: createReporter({ ...globals, nowMs: Date.now }),
    signal: stop.signal,
    environment: process.env,
    nowMs: Date.now,
    config: once(async (overrides = {}) => {
      const { loadConfig } = await import('./config/load-config.js')
      return loadConfig({
        explicitPath: globals.configPath,
        environment: process.env,
        workingDirectory: process.cwd(),
        homeDirectory: homedir(),
        version: readVersion(),
        overrides,
      })
    }),
    async openRecord() {
      const { record } = await context.config()
      if (record.kind !== 'sqlite') {
        throw new DscError(
          'RECORD_UNAVAILABLE',
          'a record in PostgreSQL cannot be opened by this version yet',
          {
            hint: 'set `record: sqlite:///var/lib/dsc/record.db`',
          },
        )
      }
      const { openSqliteRecord } = await import('./records/sqlite/record-store.js')
      return openSqliteRecord(record.path)
    },
  }
  try {
    await runProgram(argv, context, readVersion())
  } catch (error) {
    context.report.progress(undefined)
    const failure = showFailure(error, globals.isJson)
    process.stderr.write(`${failure.text}\n`)
    process.exitCode = failure.exitCode
  }
}

/** Remembers the first promise: every part of a command sees the same configuration. */
function once<Arguments extends unknown[], Value>(
  make: (...given: Arguments) => Promise<Value>,
): (...given: Arguments) => Promise<Value> {
  let made: Promise<Value> | undefined
  return (...given) => {
    made ??= make(...given)
    return made
  }
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String((manifest as { version: unknown }).version)
}
