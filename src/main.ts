import { constants } from 'node:os'
import type { CliContext } from './cli/context.js'
import { readGlobalOptions } from './cli/global-options.js'
import { createReporter } from './cli/output/reporter.js'
import { showFailure } from './cli/output/show-failure.js'
import { goesThroughDoor, runProgram } from './cli/program.js'
import { readVerbWords } from './cli/verb-words.js'
import { compose, readVersion } from './compose.js'
import { isLoggedToFile, log, readLogSettings, startLog } from './log/log.js'
import { writeAll } from './platform/standard-streams.js'

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type StopSignal = (typeof STOP_SIGNALS)[number]

/** Runs `dsc` with this process's arguments; sets its exit code, or ends it by the signal that stopped it. */
export async function main(): Promise<void> {
  const all = process.argv.slice(2)
  const separator = all.includes('--') ? all.indexOf('--') : all.length
  const { argv, note } = readVerbWords(all.slice(0, separator))
  const globals = readGlobalOptions(argv)
  const stop = new AbortController()
  let stopSignal: StopSignal | undefined
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      stopSignal ??= name
      stop.abort(name)
    })
  }
  const report = createReporter({ ...globals, nowMs: Date.now })
  const composed = compose(globals.configPath, {
    onIgnoredFile: ({ path, reason }) =>
      report.warn(`ignoring ${path}: ${reason} (to use it: --config ${path})`),
    onRecordAway: (sentence) => report.note(sentence),
    // The agent's mounter, too, is started as root.
    onBegunAnew: (sentence) => report.note(sentence),
    onOtherRecord: (sentence) => report.note(sentence),
    startsCommand: separator < all.length || argv.includes('--csi'),
    isDoorUsed: goesThroughDoor(argv),
    signal: stop.signal,
  })
  const context: CliContext = {
    ...composed,
    report,
    signal: stop.signal,
    version: readVersion(),
    configPath: globals.configPath,
    commandWords: all.slice(separator + 1),
    // A command gets its caller's variables, even if dsc becomes another user on the way.
    environment: separator < all.length ? { ...process.env } : process.env,
  }
  let hasFailed = false
  if (note) report.note(note)
  try {
    const logging = readLogSettings(
      { level: globals.logLevel, filePath: globals.logPath },
      process.env.DSC_LOG,
    )
    if (logging) startLog(logging)
    log('verbose', `dsc ${context.version} ${argv.join(' ')}`)
    await runProgram(argv, context)
  } catch (error) {
    hasFailed = true
    context.report.progress(undefined)
    const failure = showFailure(error, globals)
    writeAll('stderr', `${failure.text}\n`)
    if (isLoggedToFile()) log('verbose', failure.text)
    process.exitCode = failure.exitCode
  } finally {
    await composed.close()
    log('verbose', `ended with exit code ${process.exitCode ?? 0} after ${process.uptime().toFixed(2)} s`)
  }
  if (stopSignal !== undefined && isCutShortBy(stopSignal, { hasFailed })) endBy(stopSignal)
}

/**
 * Whether the command did not end as it would have without the signal. A server that SIGTERM stops has done its work;
 * Ctrl-C is meant for the loop of a shell around it, too.
 */
function isCutShortBy(signal: StopSignal, { hasFailed }: { readonly hasFailed: boolean }): boolean {
  const exitCode = process.exitCode ?? 0
  return hasFailed || exitCode === codeOf(signal) || (signal === 'SIGINT' && exitCode === 0)
}

/** Ends the process by the signal, so that its parent sees one: a shell leaves the loop that dsc ran in. */
function endBy(signal: StopSignal): void {
  process.exitCode = codeOf(signal) // the first process of a container outlives its own signals
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/** The exit code that shells use for a signal. */
function codeOf(signal: StopSignal): number {
  return 128 + constants.signals[signal]
}
