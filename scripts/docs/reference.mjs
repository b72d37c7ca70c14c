// `npm run docs` writes docs/reference/ from the program itself. With --check it writes nothing and fails where a page
// is not what the program says.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AGENT_METRICS } from '../../dist/agent/metrics/metrics.js'
import { listExitCodes } from '../../dist/cli/commands/doctor.js'
import { loadProgram } from '../../dist/cli/program.js'
import { createJsonSchema } from '../../dist/config/schema.js'
import { EXIT_CODES } from '../../dist/failure/exit-codes.js'
import { FEED_METRICS, typeOfFeedMetric } from '../../dist/feed/engine/feed-metrics.js'
import { BYTE_RATE_PATTERN } from '../../dist/model/byte-rate.js'
import { BYTE_SIZE_PATTERN } from '../../dist/model/byte-size.js'
import { ADVICE } from './error-advice.mjs'

const FOLDER = join(import.meta.dirname, '../../docs/reference')
const WIDTH = 110
const NOTE = '<!-- Written by `npm run docs`: change the program, not this page. -->\n'

/** Environment variables that dsc and its scripts read or set. */
const VARIABLES = [
  [['DSC_CONFIG'], 'the configuration file'],
  [
    ['DSC_NODE', 'DSC_CACHE_ROOT', 'DSC_RECORD', 'DSC_ADVERTISE'],
    'override `node`, `cache.root`, `record` and `agent.advertise`',
  ],
  [['DSC_DOOR'], 'socket of the node’s service; `none`: do not ask it'],
  [['DSC_LOG'], '`verbose` or `debug`, as the options'],
  [['DSC_RETRY_FOR'], 'how long dsc retries a source that is away (5m)'],
  [['DSC_THEME'], '`terminal`, `dark`, `light` or `contrast`: colors of the live screen'],
  [['DSC_BIN'], 'the `dsc` that the Python client starts, if it is not on `PATH`'],
  [['DSC_DATASET', 'DSC_DATASET_<NAME>'], 'set by `dsc run`: the paths'],
  [['DSC_FEED_SOCKET', 'DSC_FEED_JOB'], 'socket of a feed; tells two jobs of one user apart'],
  [['DSC_FEED_TOKEN'], 'secret between feeds and storage nodes'],
  [
    ['DSC_MEMORY_PROFILE', 'DSC_MEMORY_PROFILE_STOP', 'DSC_MOUNTER'],
    'set by `dsc memory profile` and `dsc agent --csi`',
  ],
  [
    ['DSC_DEADLINE', 'DSC_FEATURES'],
    'of the [Slurm prolog](../start/slurm.md): seconds it may take; `yes`: add the node’s name to its features',
  ],
]

const PAGES = {
  'commands.md': await writeCommands(),
  'configuration.md': writeConfiguration(),
  'errors.md': writeErrors(),
  'metrics.md': writeMetrics(),
}

const stale = Object.entries(PAGES).filter(([name, text]) => readIfThere(join(FOLDER, name)) !== text)
if (process.argv.includes('--check')) {
  for (const [name] of stale) process.stderr.write(`docs/reference/${name} is stale: run npm run docs\n`)
  process.exitCode = stale.length > 0 ? 1 : 0
} else {
  for (const [name, text] of stale) writeFileSync(join(FOLDER, name), text)
}

async function writeCommands() {
  const program = await loadProgram({ environment: {} })
  const common = program.options.filter(({ long }) => long !== '--version')
  return [
    `${NOTE}# Commands\n`,
    '`dsc help <command>` has examples, with `--all` also options for tuning and tests. Every command takes:\n',
    ...common.map(({ flags, description }) => `- \`${flags}\`: ${description}`),
    '',
    ...program.commands
      .filter((command) => command.name() !== 'help')
      .flatMap((command) => writeGroup(command, new Set(common.map(({ long }) => long)))),
  ].join('\n')
}

/** A command, then the commands inside it. Options that three of these share are told once, before them. */
function writeGroup(command, common) {
  const inner = command.commands.filter((one) => one.name() !== 'help')
  const isNew = (option) => !common.has(option.long)
  const uses = Map.groupBy(inner.flatMap(visibleOptions).filter(isNew), describe)
  const shared = [...uses.values()].filter(({ length }) => length >= 3).map(([option]) => option)
  const told = new Set(shared.map(describe))
  return [
    writeCommand(`dsc ${command.name()}`, command, visibleOptions(command).filter(isNew)),
    ...(shared.length > 0
      ? [`Several of its commands take:\n\n\`\`\`\n${formatItems(command, shared).join('\n')}\n\`\`\`\n`]
      : []),
    ...inner.map((one) => {
      const options = visibleOptions(one).filter((option) => isNew(option) && !told.has(describe(option)))
      return writeCommand(`dsc ${command.name()} ${one.name()}`, one, options)
    }),
  ]
}

function visibleOptions({ options }) {
  return options.filter((option) => !option.hidden)
}

function describe({ flags, description }) {
  return `${flags}\n${description}`
}

/** What the command does, how it is called, and its options. `--help` adds arguments, remarks and examples. */
function writeCommand(name, command, options) {
  // Without `[options]`, which follow: `dsc run <dataset>... -- <command>`.
  const call = command.createHelp().commandUsage(command).replace(' [options]', '').replace(' [command]', '')
  const lines = [...(call === name ? [] : [call]), ...formatItems(command, options)]
  return [
    `## ${name}\n`,
    `${command.description()[0].toUpperCase()}${command.description().slice(1)}.\n`,
    ...(lines.length > 0 ? [`\`\`\`\n${lines.join('\n')}\n\`\`\`\n`] : []),
  ].join('\n')
}

function formatItems(command, options) {
  const help = command.createHelp()
  help.helpWidth = WIDTH
  const width = Math.max(0, ...options.map((option) => help.optionTerm(option).length))
  return options.map((option) =>
    help.formatItem(help.optionTerm(option), width, help.optionDescription(option), help),
  )
}

function writeConfiguration() {
  return [
    `${NOTE}# Configuration\n`,
    'dsc takes the first of `--config`, `$DSC_CONFIG`, `dsc.yaml` in the working folder or a parent, `~/.config/dsc/dsc.yaml`',
    'and `/etc/dsc/dsc.yaml`. It does not merge files, and ignores one that somebody besides you and root can write.',
    '`dsc config` shows every value and where it comes from. Editors check the file with `dsc config --schema`.\n',
    '## Values\n',
    '- **Byte sizes**: `50GiB` (powers of 1024), `10GB` (powers of 1000), or bytes. A bare `10G` is refused.',
    '- **Rates**: `200MiB/s`, `1Gbit/s`, or bytes per second. A bare `Mb` is refused.',
    '- **Durations**: `250ms`, `90s`, `10m`, `24h`, `7d`, `1h30m`. **Percentages**: `80` or `80%`.',
    '- **Datasets**: `flowers: s3://ml-data/flowers/` is short for a dataset with this `source`.',
    '- **Paths** are relative to the file that contains them. `~/` is your home folder.\n',
    '## Variables\n',
    '| variable | effect |',
    '|---|---|',
    ...VARIABLES.map(([names, effect]) => `| ${names.map((name) => `\`${name}\``).join(', ')} | ${effect} |`),
    '',
    'Variables of AWS, proxies and certificates: [sources](../guides/sources.md#credentials). `NO_COLOR` turns colors off.\n',
    '## Keys\n',
    'Keys in bold are required.\n',
    '| key | value | meaning |',
    '|---|---|---|',
    ...listKeys(createJsonSchema(), '').map(
      ({ key, schema, isRequired }) =>
        `| ${isRequired ? `**\`${key}\`**` : `\`${key}\``} | ${describeValue(schema)} | ${escapeCell(schema.description ?? '')} |`,
    ),
    '',
  ].join('\n')
}

/** The keys that hold a value, dotted. */
function listKeys(schema, path) {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const key = path + name
    if (child.properties) return listKeys(child, `${key}.`)
    if (child.additionalProperties?.properties) return listKeys(child.additionalProperties, `${key}.<name>.`)
    return [{ key, schema: child, isRequired: schema.required?.includes(name) ?? false }]
  })
}

function describeValue(schema) {
  const { anyOf = [], type, format, pattern = '', minimum, maximum = Number.MAX_SAFE_INTEGER } = schema
  // A number may also be written as text with its unit, whose form says more.
  const withUnit = anyOf.find((choice) => choice.pattern)
  if (withUnit) return describeValue(withUnit)
  if (anyOf.length > 0) return [...new Set(anyOf.map(describeValue))].join(' or ')
  if (schema.additionalProperties) return `${describeValue(schema.additionalProperties)} by name`
  if (schema.const !== undefined) return `\`${schema.const}\``
  if (type === 'boolean') return '`true`, `false`'
  if (type === 'array') return 'list'
  if (type === 'object') return 'keys'
  if (type === 'integer') return `${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}`
  if (format === 'uri') return 'URL'
  if (pattern.includes('(ms|s|m|h|d)')) return 'duration'
  if (pattern.endsWith('%$')) return 'percentage'
  if (pattern === new RegExp(BYTE_RATE_PATTERN).source) return 'rate'
  if (pattern === new RegExp(BYTE_SIZE_PATTERN).source) return 'byte size'
  return 'text'
}

function writeErrors() {
  const failures = listExitCodes().filter(({ code }) => code !== 'OK')
  const codes = new Set(failures.map(({ code }) => code))
  const odd = [...codes.symmetricDifference(new Set(Object.keys(ADVICE)))]
  if (odd.length > 0)
    throw new Error(`scripts/docs/error-advice.mjs does not fit the failures: ${odd.join(', ')}`)
  return [
    `${NOTE}# Errors and exit codes\n`,
    'The exit code says what a script can do next. `dsc help exit-codes` prints these tables. By symptom:',
    '[questions](../guides/faq.md).\n',
    '| exit | meaning |',
    '|---|---|',
    ...Object.values(EXIT_CODES).map(({ exitCode, meaning }) => `| ${exitCode} | ${meaning} |`),
    '',
    'The code is the exact failure: `code` of the error that `--json` prints. *Retry* (`isRetryable`): the same command may',
    'succeed later without a change.\n',
    '| exit | code | meaning | retry | what to do |',
    '|---|---|---|---|---|',
    ...failures.map(
      ({ exitCode, code, meaning, isRetryable }) =>
        `| ${exitCode} | \`${code}\` | ${meaning} | ${isRetryable ? 'yes' : ''} | ${escapeCell(ADVICE[code])} |`,
    ),
    '',
  ].join('\n')
}

function writeMetrics() {
  const head = ['| metric | type | meaning |', '|---|---|---|']
  return [
    `${NOTE}# Metrics\n`,
    'All are in Prometheus’ text format. Names and labels are stable; more may be added.\n',
    '## Of an agent\n',
    '`GET /metrics` of `dsc agent`, with its token: see [operate](../guides/operate.md#watch-it).\n',
    ...head,
    ...Object.entries(AGENT_METRICS).map(
      ([name, [type, meaning]]) => `| \`${name}\` | ${type} | ${escapeCell(meaning)} |`,
    ),
    '',
    '## Of a feed\n',
    '`dsc feed status`, or `GET` on its socket: see [the feed](../guides/feed.md#make-it-faster).\n',
    ...head,
    ...Object.entries(FEED_METRICS).map(
      ([name, meaning]) => `| \`dsc_feed_${name}\` | ${typeOfFeedMetric(name)} | ${escapeCell(meaning)} |`,
    ),
    '',
  ].join('\n')
}

function escapeCell(text) {
  return text.replaceAll('|', '\\|')
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    return undefined
  }
}
