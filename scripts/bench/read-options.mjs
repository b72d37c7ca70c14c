import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * The options that a benchmark was called with. `--help` prints the comment at the top of `script` (a file URL) instead,
 * and what the script does not know ends it in one line.
 */
export function readOptions(script, config) {
  const options = { ...config.options, help: { type: 'boolean', short: 'h' } }
  try {
    const given = parseArgs({ ...config, options })
    if (!given.values.help) return given
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS')) throw error
    process.stderr.write(`${error.message.replace(/\. .*/s, '')}; --help says what there is\n`)
    process.exit(2)
  }
  const lines = readFileSync(fileURLToPath(script), 'utf8').split('\n')
  const end = lines.findIndex((line) => !line.startsWith('//'))
  process.stdout.write(
    `${lines
      .slice(0, end)
      .map((line) => line.replace(/^\/\/ ?/, ''))
      .join('\n')}\n`,
  )
  process.exit(0)
}
