// `npm run docs` writes docs/reference/ from the program itself. With --check it writes nothing and fails where a page
// is not what the program says.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AGENT_METRICS } from '../../dist/agent/metrics/metrics.js'
import { listExitCodes } from '../../dist/cli/commands/doctor.js'
import { loadProgram } from '../../dist/cli/program.js'
import { createJsonSchema } from '../../dist/config/schema.js'
import { FEED_METRICS, typeOfFeedMetric } from '../../dist/feed/engine/feed-metrics.js'
import { BYTE_RATE_PATTERN } from '../../dist/model/byte-rate.js'
import { BYTE_SIZE_PATTERN } from '../../dist/model/byte-size.js'

const FOLDER = join(import.meta.dirname, '../../docs/reference')
const NOTE = '<!-- Written by `npm run docs`: change the program, not this page. -->\n'

const PAGES = {
  'commands.md': await writeCommands(),
  'configuration.md': writeConfiguration(),
  'exit-codes.md': writeExitCodes(),
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
  const isCommon = ({ long }) => common.some((option) => option.long === long)
  return [
    `${NOTE}# Commands\n`,
    'What `--help` says. Every command also takes:\n',
    ...common.map(({ flags, description }) => `- \`${flags}\`: ${description}`),
    '',
    ...[...walk(program, 'dsc')]
      .slice(1)
      .map(({ name, command }) => `## ${name}\n\n\`\`\`\n${helpOf(command, isCommon)}\n\`\`\`\n`),
  ].join('\n')
}

function* walk(command, name) {
  yield { command, name }
  for (const inner of command.commands)
    if (inner.name() !== 'help') yield* walk(inner, `${name} ${inner.name()}`)
}

/** The help and its examples, at one width and without the options that every command has. */
function helpOf(command, isCommon) {
  const written = []
  command.configureOutput({ writeOut: (text) => written.push(text), getOutHelpWidth: () => 110 })
  command.configureHelp({
    ...command.configureHelp(),
    visibleOptions: ({ options }) => options.filter((option) => !option.hidden && !isCommon(option)),
  })
  command.outputHelp()
  return written.join('').trimEnd()
}

function writeConfiguration() {
  return [
    `${NOTE}# Configuration keys\n`,
    'How values are written, and which file counts: [configuration](../configuration.md). Keys in bold are required.\n',
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
  if (anyOf.length > 0) return anyOf.map(describeValue).join(' or ')
  if (schema.additionalProperties) return `${describeValue(schema.additionalProperties)} by name`
  if (schema.const !== undefined) return `\`${schema.const}\``
  if (type === 'boolean') return '`true`, `false`'
  if (type === 'array') return 'list'
  if (type === 'integer') return `${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}`
  if (format === 'uri') return 'URL'
  if (pattern.includes('(ms|s|m|h|d)')) return 'duration'
  if (pattern.endsWith('%$')) return 'percentage'
  if (pattern === new RegExp(BYTE_RATE_PATTERN).source) return 'rate'
  if (pattern === new RegExp(BYTE_SIZE_PATTERN).source) return 'byte size'
  return 'text'
}

function writeExitCodes() {
  return [
    `${NOTE}# Exit codes\n`,
    '`dsc doctor --exit-codes` prints them. What to do about each: [troubleshooting](../troubleshooting.md). With `--json` a',
    'failure is one line on stderr: `{"dsc": 1, "error": {"code", "message", "hint", "exitCode"}}`. *Later*: the same call may',
    'succeed later without anybody changing anything.\n',
    '| exit code | code | meaning | later |',
    '|---|---|---|---|',
    ...listExitCodes().map(
      ({ exitCode, code, meaning, isRetryable }) =>
        `| ${exitCode} | ${code === 'OK' ? '`OK`' : `[\`${code}\`](../troubleshooting.md#${code.toLowerCase()})`} | ${meaning} | ${isRetryable ? 'yes' : ''} |`,
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
    '`GET /metrics` of `dsc agent`, with its token: see [watching](../cluster.md#watching).\n',
    ...head,
    ...Object.entries(AGENT_METRICS).map(
      ([name, [type, meaning]]) => `| \`${name}\` | ${type} | ${escapeCell(meaning)} |`,
    ),
    '',
    '## Of a feed\n',
    '`dsc feed status`, or `GET` on its socket: see [the feed’s metrics](../feed.md#metrics).\n',
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
