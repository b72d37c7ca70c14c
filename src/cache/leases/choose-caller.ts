/** A process, as far as it matters here. */
interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  /** Arguments, separated by NUL. */
  readonly commandLine: string
}

/** What can be seen of the processes of this machine. */
export interface ProcessTree {
  readonly find: (pid: number) => ProcessEntry | undefined
  /** The file that the process runs; undefined where it may not be seen. */
  readonly findExecutable: (pid: number) => string | undefined
  /** The pipe that is its stdout; undefined where it is none, or may not be seen. */
  readonly findStdoutPipe: (pid: number) => string | undefined
  readonly holdsReadEnd: (pid: number, pipe: string) => boolean
}

/**
 * Finds the process that gets what `pid` prints, and so uses the data for as long as it lives. First match wins:
 *
 * | stdout of dsc                                             | the caller is                                   |
 * |-----------------------------------------------------------|-------------------------------------------------|
 * | a pipe that an ancestor reads: `P=$(timeout 9 dsc …)`     | that ancestor …                                 |
 * | … which hands on what it reads: `chronic`, a subshell     | who reads its stdout, by the same rules         |
 * | … and nobody above it reads                               | a subshell: it; else as if it read nothing      |
 * | anything else                                             | the nearest ancestor that goes on               |
 *
 * Shells, interpreters, make and schedulers' steps go on; whatever else stands in between (`timeout`, `flock`,
 * `sudo`, what nobody has heard of yet) ends with dsc. Undefined where nothing above goes on, as under cron or sshd.
 */
export function chooseCaller(pid: number, tree: ProcessTree): number | undefined {
  let from = pid
  for (let reader = findReader(from, tree); reader !== undefined; reader = findReader(from, tree)) {
    const isRead = findReader(reader.pid, tree) !== undefined
    const handsOn = isRunner(reader) || (isRead && !goesOn(reader, tree))
    if (!handsOn) return reader.pid
    from = reader.pid
  }
  for (const ancestor of listAncestors(from, tree)) if (goesOn(ancestor, tree)) return ancestor.pid
  return undefined
}

/** The nearest ancestor that reads the stdout of the process. */
function findReader(pid: number, tree: ProcessTree): ProcessEntry | undefined {
  const pipe = tree.findStdoutPipe(pid)
  if (pipe === undefined) return undefined
  for (const ancestor of listAncestors(pid, tree)) if (tree.holdsReadEnd(ancestor.pid, pipe)) return ancestor
  return undefined
}

function* listAncestors(pid: number, tree: ProcessTree): Generator<ProcessEntry> {
  let entry = tree.find(pid)
  while (entry !== undefined && entry.parentPid > 0) {
    entry = tree.find(entry.parentPid)
    if (entry) yield entry
  }
}

const SHELLS = /^(ba|da|z|k|mk|pdk|fi|a|tc|c|)sh$/
const INTERPRETERS =
  /^(python|pypy|ipython|node|bun|deno|perl|ruby|R|Rscript|julia|java|php|lua|tclsh|octave|matlab)[\d.]*$/i
const OTHERS = /^(g?make|ninja|slurmstepd|condor_starter|sge_shepherd)$/
/** Programs and scripts that run a command, hand on what it prints, and end with it. */
const RUNNERS =
  /^(npm|npx|pnpm|yarn|chronic|parallel|unbuffer|conda|mamba|sudo|doas|script|sshd(-session)?:?)(-cli\.js|\.js|\.cjs)?$/

function goesOn(entry: ProcessEntry, tree: ProcessTree): boolean {
  if (isRunner(entry)) return false
  const names = [
    baseName(entry.commandLine.split('\0')[0] ?? ''),
    baseName(tree.findExecutable(entry.pid) ?? ''),
  ]
  if (names.some((name) => INTERPRETERS.test(name) || OTHERS.test(name))) return true
  return names.some((name) => SHELLS.test(name)) && !endsAtOnce(entry, tree)
}

/**
 * A subshell, as in `P=$(cd x; dsc prepare y)`, is a copy of its shell: it has the command line of its parent. `sh -c` of
 * one command ends with it, and npm and parallel give each of theirs a shell.
 */
function endsAtOnce(entry: ProcessEntry, tree: ProcessTree): boolean {
  const [, option, text = ''] = entry.commandLine.split('\0')
  if (option === '-c' && !/[;&|\n]/.test(text)) return true
  const parent = tree.find(entry.parentPid)
  if (parent === undefined || entry.commandLine === '') return false
  return parent.commandLine === entry.commandLine || (option === '-c' && isRunner(parent))
}

/** npm writes what it does over its command line: `npm exec dsc prepare x`. */
function isRunner({ commandLine }: ProcessEntry): boolean {
  const [first = '', ...rest] = commandLine.split('\0')
  const program = baseName(first.split(' ')[0]!)
  const script = INTERPRETERS.test(program) ? rest.find((word) => !word.startsWith('-')) : undefined
  return RUNNERS.test(program) || (script !== undefined && RUNNERS.test(baseName(script)))
}

/** The name of a program; a login shell calls itself `-bash`. */
function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/^-/, '')
}
