// The options of `npm run bench`: a few that every benchmark has, and those that each lists with their defaults.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const COMMON = {
  smoke: { type: 'boolean' },
  write: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  pages: { type: 'string' },
}

/** What was given for every benchmark, the names, and the words that are for one benchmark alone. */
export function parseWords(words) {
  const { tokens } = parseArgs({
    args: words,
    options: COMMON,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const isCommon = (word) => Object.hasOwn(COMMON, word.replace(/^--?/, '')) || word === '-h'
  const name = words[0]?.startsWith('-') ? undefined : words[0]
  const common = Object.fromEntries(
    tokens
      .filter(({ name: option }) => option in COMMON)
      .map(({ name: option, value }) => [option, value ?? true]),
  )
  const own = words.slice(name === undefined ? 0 : 1)
  const rest = own.filter((word, at) => !isCommon(word) && own[at - 1] !== '--pages')
  return { common, positionals: common.smoke ? rest : [name].filter(Boolean), rest }
}

/** The options of one benchmark: each has the type of its default. A word that it does not know ends in one line. */
export function readOptions(words, defaults) {
  const options = Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, { type: value === false ? 'boolean' : 'string' }]),
  )
  try {
    const { values } = parseArgs({ args: words, options })
    const typed = Object.entries(values).map(([name, value]) => [
      name,
      typeof defaults[name] === 'number' ? Number(value) : value,
    ])
    return { ...defaults, ...Object.fromEntries(typed) }
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS')) throw error
    process.stderr.write(`${error.message.replace(/\. .*/s, '')}; --help lists the options\n`)
    process.exit(2)
  }
}

/** Prints the comment at the top of a script. */
export function printHead(path, more = '') {
  const lines = readFileSync(path, 'utf8').split('\n')
  const head = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('//')),
  )
  process.stdout.write(`${head.map((line) => line.replace(/^\/\/ ?/, '')).join('\n')}\n${more}\n`)
}
