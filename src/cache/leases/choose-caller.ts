/** The facts needed about a process. */
interface ProcessEntry {
  readonly pid: number
  readonly parentPid: number
  /** Arguments, separated by NUL. */
  readonly commandLine: string
}

/** The facts about processes of this machine that dsc can see. */
export interface ProcessTree {
  readonly find: (pid: number) => ProcessEntry | undefined
  /** The file that the process runs; undefined if dsc may not see it. */
  readonly findExecutable: (pid: number) => string | undefined
  /** The pipe at its stdout; undefined if stdout is not a pipe or dsc may not see it. */
  readonly findStdoutPipe: (pid: number) => string | undefined
  readonly holdsReadEnd: (pid: number, pipe: string) => boolean
}

/**
 * Finds the process that receives the output of `pid`, and so uses the data until it exits. First match wins:
 *
 * | stdout of dsc                                             | the caller is                                   |
 * |-----------------------------------------------------------|-------------------------------------------------|
 * | a pipe that an ancestor reads: `P=$(timeout 9 dsc …)`     | that ancestor …                                 |
 * | … which passes its input on: `chronic`, a subshell        | the reader of its stdout, by the same rules     |
 * | … and no ancestor reads that                              | a subshell itself; else as if it read nothing   |
 * | anything else                                             | the nearest ancestor that outlives dsc          |
 *
 * Shells, interpreters, make and schedulers' steps outlive dsc; any other program in between (`timeout`, `flock`,
 * `sudo`, unknown ones) ends with dsc. Undefined if no ancestor outlives dsc, as under cron or sshd.
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
/** Programs and scripts that run a command, pass on its output, and end with it. */
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
 * A subshell, as in `P=$(cd x; dsc prepare y)`, is a copy of its shell and has its parent's command line. `sh -c` with
 * one command ends with it, and npm and parallel start a shell for each of theirs.
 */
function endsAtOnce(entry: ProcessEntry, tree: ProcessTree): boolean {
  const [, option, text = ''] = entry.commandLine.split('\0')
  if (option === '-c' && !/[;&|\n]/.test(text)) return true
  const parent = tree.find(entry.parentPid)
  if (parent === undefined || entry.commandLine === '') return false
  return parent.commandLine === entry.commandLine || (option === '-c' && isRunner(parent))
}

/** npm writes its own command over its command line: `npm exec dsc prepare x`. */
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
