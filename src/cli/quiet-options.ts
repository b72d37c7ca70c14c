import type { CommandUnknownOpts } from 'commander'

/** How to read samples, as `dsc feed serve` explains it. */
const SAMPLES = ['--only', '--as', '--columns']
/** For tests and measurements: the feed chooses better by itself. */
const FEED_TUNING = ['--k', '--request', '--evict', '--no-map', '--no-next', '--conformance']
/** The options that a measurement of the feed takes over from `dsc feed serve`. */
const FEED = [
  ...SAMPLES,
  ...['--split', '--dialect', '--start', '--on-error', '--from', '--layout', '--fallback', '--tls'],
  ...['--seed', '--epoch', '--order', '--memory', '--mix'],
  ...FEED_TUNING,
]

/**
 * Options that help leaves out, by command: those for tests, measurements, papers and prologs, those of the chart, those
 * that a setting replaces, and second names. They work, and `dsc help <command> --all` lists them.
 */
export const QUIET_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  adopt: ['--path-style'],
  agent: ['--controller'],
  completion: ['--list'],
  config: ['--schema'],
  'dataset add': ['--path-style'],
  'exchange bench': [
    '--wire',
    '--levels',
    '--mode',
    '--repeats',
    '--rendezvous',
    '--rank',
    '--listen-host',
    '--token-file',
  ],
  'exchange plan': ['--backward-ms', '--alpha-us', '--gigabits', '--optimum'],
  'exchange serve': ['--suspect-after', '--lost-after'],
  'feed bench': [...FEED, '--epochs'],
  'feed headspace': [...FEED, '--batches', '--warmup'],
  'feed index': [...SAMPLES, '--on-error'],
  'feed plan': [...SAMPLES, '--fixed-ms', '--bandwidth', '--k', '--cold'],
  'feed serve': ['--dialect', '--idle-exit', ...FEED_TUNING],
  'feed storage': SAMPLES,
  init: ['--low-water-percent'],
  'memory explain': ['--curve', '--svg'],
  'memory plan': ['--smallest', '--svg', '--reload'],
  'memory profile': ['--keep-running'],
  'memory simulate': ['--slow-copies', '--slow-compute', '--fail-every'],
  'memory verify': ['--tolerance'],
  'memory ways': ['--smallest'],
  'params serve': ['--nesterov', '--betas', '--eps', '--lost-after', '--checkpoint-every'],
  prepare: ['--all', '--prolog', '--remote'],
  release: ['--any-node'],
  self: ['--schemas'],
  'self update': ['--allow-downgrade', '--dry-run', '--executable'],
}

/** Leaves the quiet options of a command, and of those in it, out of their help; a line there says how to list them. */
export function hideQuietOptions(command: CommandUnknownOpts, path = command.name()): void {
  const quiet = QUIET_OPTIONS[path] ?? []
  for (const option of command.options) if (quiet.includes(option.long ?? '')) option.hideHelp()
  if (quiet.length > 0) command.addHelpText('after', `\nMore options: dsc help ${path} --all`)
  for (const child of command.commands) hideQuietOptions(child, `${path} ${child.name()}`)
}
