import type { LogLevel } from '../log/log.js'
import { alignColumns } from './output/align-columns.js'

/** Options of every command, allowed before or after any verb. */
export const GLOBAL_OPTIONS = [
  ['--config <file>', 'configuration file (default: the nearest dsc.yaml)'],
  ['--json', 'print the result as JSON'],
  ['-q, --quiet', 'print only errors on stderr'],
  ['--verbose', 'log requests, retries and timings to stderr'],
  ['--debug', 'as --verbose, and every SQL statement'],
  ['--log-file <file>', 'write log, notes and errors to this file'],
] as const

/** Global options that take the next word as their value. */
export const VALUE_FLAGS: readonly string[] = GLOBAL_OPTIONS.filter(([flags]) => flags.endsWith('>')).map(
  ([flags]) => flags.replace(/ .*/, ''),
)

/** Whether `argv` has no option but global ones, whole ones. */
export function hasOnlyGlobalOptions(argv: readonly string[]): boolean {
  const known = GLOBAL_OPTIONS.flatMap(([flags]) => flags.split(/[ ,]+/))
  const flags = argv.filter((word) => word.startsWith('-')).map((word) => word.split('=')[0]!)
  return flags.every((flag) => known.includes(flag)) && !VALUE_FLAGS.includes(argv.at(-1) ?? '')
}

/** The global options of a command line. */
export interface GlobalOptions {
  readonly isJson: boolean
  readonly isQuiet: boolean
  readonly configPath: string | undefined
  readonly logLevel: LogLevel | undefined
  readonly logPath: string | undefined
}

/** Reads the global options anywhere in `argv`; commander reads them again along with the verb's own. */
export function readGlobalOptions(argv: readonly string[]): GlobalOptions {
  return {
    isJson: argv.includes('--json') || argv.includes('--ndjson'),
    isQuiet: argv.includes('--quiet') || argv.includes('-q'),
    configPath: findValue(argv, '--config'),
    logLevel: argv.includes('--debug') ? 'debug' : argv.includes('--verbose') ? 'verbose' : undefined,
    logPath: findValue(argv, '--log-file'),
  }
}

function findValue(argv: readonly string[], flag: string): string | undefined {
  const at = argv.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  const word = argv[at]
  return word?.includes('=') ? word.slice(flag.length + 1) : word && argv[at + 1]
}

/** `dsc help options`. */
export function formatGlobalOptions(): string {
  const rows = GLOBAL_OPTIONS.map(([flags, effect]) => [`  ${flags}`, effect])
  return `Every command takes:\n\n${alignColumns(rows)}\n\nThe version: dsc --version\n`
}
