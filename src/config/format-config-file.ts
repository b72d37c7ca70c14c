import { formatExactSize } from '../model/byte-size.js'

/** The settings of a new dsc.yaml from `dsc init` or `dsc setup`. An absent value becomes a comment with its default. */
export interface NewSettings {
  /** The machine's own name, shown if `node` is absent. */
  readonly hostName?: string
  readonly node?: string | undefined
  readonly record?: string | undefined
  readonly cacheRoot: string
  readonly maxDatasets?: number | undefined
  readonly maxPercent?: number | undefined
  readonly minFreeBytes?: number | undefined
  readonly lowWaterPercent?: number | undefined
  /** Sources by the name of their dataset. */
  readonly datasets?: Readonly<Record<string, string>> | undefined
}

/**
 * Formats a dsc.yaml that explains itself. Writes values as JSON strings where YAML could misread them, so that reading
 * returns the given value.
 */
export function formatConfigFile(settings: NewSettings): string {
  const { cacheRoot, maxDatasets, maxPercent, minFreeBytes, lowWaterPercent } = settings
  const datasets = Object.entries(settings.datasets ?? {}).map(
    ([name, source]) => `  ${quote(name)}: ${quote(source)}\n`,
  )
  return `# Configuration of dsc. \`dsc config\` shows what counts, \`dsc config --schema\` every key, and
# \`dsc doctor\` whether it works here. Paths are relative to this file. Environment variables (DSC_NODE,
# DSC_CACHE_ROOT, DSC_RECORD) override it.

# Name of this machine in the record. Leave it out where several machines share this file.
${line('node', settings.node === undefined ? undefined : quote(settings.node), { example: settings.hostName ?? 'gpu-07', comment: 'default: the host name' })}

# Where dsc keeps track of copies and who uses them: a SQLite file on a local disk.
${line('record', settings.record === undefined ? undefined : quote(settings.record), { example: 'sqlite:///var/lib/dsc/record.db', comment: 'default: record.db in cache.root' })}

# The copies on this machine, and what bounds them. All limits that are set hold together.
cache:
  root: ${quote(cacheRoot)}
${line('  maxPercent', maxPercent, { example: '80', comment: 'of the file system that holds root' })}
${line('  minFree', minFreeBytes === undefined ? undefined : formatExactSize(minFreeBytes), { example: '50GiB', comment: 'what a download must leave free on it' })}
${line('  maxDatasets', maxDatasets, { example: '12', comment: 'copies at once' })}
${line('  lowWaterPercent', lowWaterPercent, { example: '60', comment: '`dsc cleanup` deletes idle copies down to this' })}

# Datasets by name, to be prepared with \`dsc prepare <name>\`. More can be added with \`dsc dataset add\`.
datasets:
${datasets.join('')}#  flowers:
#    source: s3://ml-data/flowers/
#    endpoint: http://127.0.0.1:9000   # leave out for AWS
#    region: us-east-1
#    pathStyle: true                   # most servers other than AWS need it
#    include: ['**/*.jpg', labels.csv] # leave out for every object
`
}

/** A setting; without a value, a comment with an example. `key` includes its indentation. */
function line(
  key: string,
  value: string | number | undefined,
  { example, comment }: { readonly example: string; readonly comment: string },
): string {
  const text = value === undefined ? `${key.replace(/\S/, '# $&')}: ${example}` : `${key}: ${value}`
  return `${text.padEnd(28)} # ${comment}`
}

/** Plain if YAML reads plain text as itself, else in JSON's quotes, which are YAML's too. */
function quote(text: string): string {
  return /^(?:[A-Za-z]|~?\/|\.{1,2}\/)[\w./:@~+-]*$/.test(text) &&
    !/^(true|false|yes|no|on|off|null|~|\.inf|\.nan)$/i.test(text) &&
    !/:$/.test(text)
    ? text
    : JSON.stringify(text)
}
