import { DscError } from '../failure/dsc-error.js'
import { findClosest } from '../model/find-closest.js'
import { VALUE_FLAGS } from './global-options.js'
import { VERBS } from './verbs.js'

/** A view of a listed verb that is a verb itself: `dsc status --leases` is `dsc leases`. */
interface View {
  readonly verb: string
  readonly option: string
  /** The verb that `verb` with `option` stands for. */
  readonly name: string
  readonly summary: string
}

/** Views of the listed verbs. Each takes its own options: `dsc status --leases --help` shows them. */
export const VIEWS: readonly View[] = [
  { verb: 'status', option: '--leases', name: 'leases', summary: 'list who uses which copy' },
  { verb: 'status', option: '--history', name: 'history', summary: 'list what happened, newest first' },
  { verb: 'status', option: '--where', name: 'hint', summary: 'list nodes that have the datasets named' },
  {
    verb: 'report',
    option: '--receipt',
    name: 'receipt',
    summary: 'print the data versions that a job used',
  },
  { verb: 'lock', option: '--off', name: 'unlock', summary: 'remove the lock' },
  { verb: 'doctor', option: '--settings', name: 'config', summary: 'show every setting and its origin' },
  { verb: 'doctor', option: '--bench', name: 'bench', summary: 'measure disk, source and record' },
]

/** Words of other programs, and the words that dsc has for them. dsc goes on with these: they delete nothing. */
const OTHER_WORDS: Readonly<Record<string, readonly string[]>> = {
  ls: ['status'],
  list: ['status'],
  ps: ['status'],
  top: ['status'],
  du: ['status'],
  df: ['status'],
  info: ['status'],
  show: ['status'],
  get: ['prepare'],
  pull: ['prepare'],
  fetch: ['prepare'],
  stage: ['prepare'],
  download: ['prepare'],
  log: ['status', '--history'],
  logs: ['status', '--history'],
  check: ['verify'],
  version: ['--version'],
}

/** Words of other programs that are only suggested: these verbs change what others use, or run on. */
const SUGGESTED: Readonly<Record<string, string>> = {
  rm: 'evict',
  remove: 'evict',
  delete: 'evict',
  gc: 'cleanup',
  prune: 'cleanup',
  clean: 'cleanup',
  import: 'adopt',
  serve: 'agent',
  pin: 'lock',
  unpin: 'unlock',
  sync: 'prepare',
}

/** Where the verb stands in `argv`: the first word that is neither an option nor the value of one; -1: nowhere. */
function findVerbIndex(argv: readonly string[]): number {
  return argv.findIndex((each, at) => !each.startsWith('-') && !VALUE_FLAGS.includes(argv[at - 1] ?? ''))
}

/** The verb in `argv`, if its first word is one. */
export function findVerb(argv: readonly string[]): string | undefined {
  const word = argv[findVerbIndex(argv)]
  return VERBS.find(({ name }) => name === word)?.name
}

/**
 * `argv` in dsc's own words: with `status` for `ls`, and the name of a view for the verb and option that lead to it.
 * `note` tells people the word that they will find in dsc's help.
 */
export function readVerbWords(argv: readonly string[]): {
  argv: readonly string[]
  note: string | undefined
} {
  const at = findVerbIndex(argv)
  const word = argv[at] ?? ''
  const own = Object.hasOwn(OTHER_WORDS, word) ? OTHER_WORDS[word] : undefined
  const renamed = own ? argv.toSpliced(at, 1, ...own) : argv
  const note = own && `dsc: \`dsc ${word}\` is called \`dsc ${own.join(' ')}\``
  const asked = renamed.map((each) => each.split('=')[0])
  const view = VIEWS.find(({ verb, option }) => renamed[at] === verb && asked.includes(option))
  if (view === undefined) return { argv: renamed, note }
  const optionAt = asked.indexOf(view.option)
  const value = renamed[optionAt]!.slice(view.option.length + 1) // as in --receipt=4711
  const others = renamed.toSpliced(optionAt, 1, ...(value === '' ? [] : [value]))
  return { argv: others.with(at, view.name), note }
}

/** Rejects a first word that is no verb, with the verb that was probably meant and the rest of the line. */
export function rejectUnknownVerb(argv: readonly string[]): void {
  const at = findVerbIndex(argv)
  const word = argv[at]
  if (word === undefined || findVerb(argv) !== undefined) return
  const listed = VERBS.filter(({ group }) => group !== undefined).map(({ name }) => name)
  const meant = Object.hasOwn(SUGGESTED, word) ? SUGGESTED[word] : findClosest(word, listed)
  throw new DscError('USAGE', `unknown command "${word}"${meant ? `. Did you mean ${meant}?` : ''}`, {
    hint: meant ? ['dsc', ...argv.with(at, meant)].join(' ') : 'dsc --help',
  })
}
