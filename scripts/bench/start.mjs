// How large the packages are (of `npm run package`), and how long dsc takes to start beside `node -e 0`: each command a
// whole process, in turn with the others. On a machine that does nothing else.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { loadavg } from 'node:os'
import { basename, join } from 'node:path'
import { DSC, timeInTurn } from './harness/processes.mjs'
import { formatTimes, table } from './harness/tables.mjs'
import { makeNode } from './warm.mjs'

const PACKAGES = 'dist-packages'
const PROGRAM = join(process.cwd(), PACKAGES, `dsc-linux-${process.arch}`)
/** Above this load average another program had one of the cores for a good part of the time. */
const QUIET_LOAD = 0.3

export const benchmark = {
  page: 'start.md',
  options: { rounds: 30 },
  smoke: { rounds: 1 },
  run(bench) {
    if (!existsSync(PROGRAM)) {
      for (const title of ['packages', 'commands'])
        bench.leaveOut(title, `${PROGRAM} is missing: npm run package`)
      return
    }
    const [load] = loadavg()
    bench.section('packages', table(['package', 'MB'], listSizes()))
    if (load > QUIET_LOAD && !bench.isSmoke) bench.leaveOut('commands', `the machine is busy: load ${load}`)
    else bench.section('commands', formatTimes(measureStarts(bench)))
  },
}

function listSizes() {
  const pattern = `dsc{-linux-${process.arch},_data-*.whl,-*.tgz,_*.deb,-*.rpm}`
  const paths = globSync(pattern, { cwd: PACKAGES }).sort()
  const compressed = execFileSync('sh', ['-c', 'xz -T0 -3 -c "$1" | wc -c', 'sh', PROGRAM], {
    encoding: 'utf8',
  })
  const sizes = paths.map((path) => [path, statSync(join(PACKAGES, path)).size])
  return [...sizes, [`${basename(PROGRAM)}, compressed by xz -3`, Number(compressed)]].map(
    ([name, bytes]) => [name, (bytes / 1e6).toFixed(1)],
  )
}

function measureStarts(bench) {
  const cwd = makeNode(bench, 'sqlite', (folder) => `sqlite://${folder}/record.db`)
  process.env.XDG_CACHE_HOME = join(bench.folder, 'home')
  const prepare = ['prepare', 'data', '--task', 'bench']
  const commands = {
    '`node -e 0`': [process.execPath, '-e', '0'],
    '`dsc --version`, npm package': [...DSC, '--version'],
    '`dsc --version`, executable': [PROGRAM, '--version'],
    '`dsc prepare` of a ready copy, npm package': [...DSC, ...prepare],
    '`dsc prepare` of a ready copy, executable': [PROGRAM, ...prepare],
    '`dsc status`, executable': [PROGRAM, 'status'],
  }
  const calls = Object.fromEntries(Object.entries(commands).map(([name, words]) => [name, { words, cwd }]))
  return timeInTurn(calls, bench.given)
}
