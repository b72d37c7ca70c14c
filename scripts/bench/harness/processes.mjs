// Programs that a benchmark runs: whole ones with their cost, servers, and what they take of the processors.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const DSC = [process.execPath, fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))]
/** Ticks of /proc/PID/stat in a second. */
const TICKS = 100

/** Runs a command to its end: wall and processor seconds, and the peak of its memory. `output`: a file for its stdout. */
export function runTimed(words, { cwd, env, output, accept = (status) => status === 0 } = {}) {
  const startMs = performance.now()
  const { status, stderr, stdout } = spawnSync('/usr/bin/env', ['time', '-f', 'used=%U %S %M', ...words], {
    ...{ cwd, env, encoding: 'utf8', maxBuffer: 2 ** 30 },
    stdio: ['ignore', output === undefined ? 'pipe' : openSync(output, 'w'), 'pipe'],
  })
  const seconds = (performance.now() - startMs) / 1000
  if (!accept(status)) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr.slice(-2000)}`)
  const [, user, system, rss] = /used=(\S+) (\S+) (\S+)/.exec(stderr).map(Number)
  return { seconds, cpuSeconds: user + system, rssMiB: rss / 1024, stdout }
}

/** Runs `rounds` times, after one run that warms up: median and span of ms, and the largest peak. */
export function runOften(rounds, words, options) {
  runTimed(words, options)
  return Array.from({ length: rounds }, () => runTimed(words, options))
}

/**
 * Runs each of the named commands in turn, so that whatever slows the machine slows all: wall ms by name, or with
 * `ofProcessors` those that it took of the processors, to which other programs add little.
 */
export function timeInTurn(commands, { rounds, warmUps = 3 }, { ofProcessors = false } = {}) {
  const times = new Map(Object.keys(commands).map((name) => [name, []]))
  for (let round = -warmUps; round < rounds; round++)
    for (const [name, { words, cwd, env, before = () => {} }] of Object.entries(commands)) {
      before(cwd)
      const timed = ofProcessors
        ? ['bash', '-c', 'TIMEFORMAT="used=%3U %3S"; time "$@"', '-', ...words]
        : words
      const startMs = performance.now()
      const { status, stderr } = spawnSync(timed[0], timed.slice(1), { cwd, env, encoding: 'utf8' })
      const ms = performance.now() - startMs
      if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
      const [, user, system] = /used=(\S+) (\S+)/.exec(stderr) ?? []
      if (round >= 0) times.get(name).push(ofProcessors ? 1000 * (Number(user) + Number(system)) : ms)
    }
  return times
}

/** Starts a server that `bench` ends. */
export function startServer(bench, [program, ...words], options = {}) {
  const child = spawn(program, words.map(String), { stdio: ['ignore', 'ignore', 'inherit'], ...options })
  const ended = once(child, 'exit')
  bench.after(async () => {
    child.kill()
    await ended
  })
  return child
}

/** Starts a server and waits for the first line that it prints. */
export async function startTalking(bench, words, options = {}) {
  const child = startServer(bench, words, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  const early = once(child, 'exit').then(([code]) =>
    Promise.reject(new Error(`${words.join(' ')} ended with ${code}`)),
  )
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), early])
  early.catch(() => {})
  return { child, line }
}

/** Processor seconds of a process and its children so far; 0 of one that has ended. */
export function cpuSecondsOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean)
    const own = (Number(fields[11]) + Number(fields[12])) / TICKS
    return children.reduce((sum, child) => sum + cpuSecondsOf(child), own)
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return 0
    throw error
  }
}

/** Calls with no argument: returns a function that says which share of all processors was busy since. */
export function watchProcessors() {
  const read = () => {
    const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).map(Number)
    // What runs at low priority beside this gives way: times[1].
    return {
      total: times.slice(0, 8).reduce((sum, time) => sum + time, 0),
      idle: times[1] + times[3] + times[4],
    }
  }
  const before = read()
  return () => {
    const after = read()
    return 1 - (after.idle - before.idle) / Math.max(1, after.total - before.total)
  }
}

/** Bytes of a line of /proc/PID/status. */
export function memoryOf(pid, name) {
  return (
    1024 * Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1])
  )
}

/** What scripts, with their words, built or found: lines `name=path`. */
export function findPrograms(...scripts) {
  const lines = scripts.flatMap((script) =>
    execFileSync('bash', script.trim().split(' '), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
      .trim()
      .split('\n'),
  )
  return Object.fromEntries(lines.filter(Boolean).map((line) => line.split('=')))
}

/** The first line of what a program says of its version. */
export function versionOf(program, ...words) {
  const { stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' })
  return `${stdout || stderr}`.split('\n')[0].replace(/ \(.*/, '')
}

/** Runs a script of Python, which prints sections and pictures as lines of JSON. */
export async function runPython(bench, script, words, { venv = 'scripts/python-venv.sh', drawBars } = {}) {
  const folder = execFileSync('bash', [venv], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim()
  const stderr = bench.isSmoke ? 'pipe' : 'inherit'
  const child = spawn(`${folder}/bin/python`, [`scripts/bench/${script}`, ...words.map(String)], {
    stdio: ['ignore', 'pipe', stderr],
    env: { ...process.env, PYTHONPATH: 'src/python' },
  })
  bench.after(() => void child.kill())
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors = (errors + text).slice(-3000)
  })
  const ended = once(child, 'close')
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"bench": ')) continue
    const said = JSON.parse(line).bench
    if (said.section) bench.section(said.section, said.text)
    if (said.picture) bench.picture(said.picture, drawBars(said.groups))
    if (said.version) bench.versions.push(said.version)
    if (said.leftOut) bench.leaveOut(said.leftOut, said.why)
  }
  const [code] = await ended
  if (code !== 0) throw new Error(`${script} ended with ${code}: ${errors}`)
}
