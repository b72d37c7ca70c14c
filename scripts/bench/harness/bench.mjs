// One run of a benchmark: its options, its folder, what it measured, and what must be ended after it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from './read-options.mjs'

export class Bench {
  /** Markdown by title, in the order of the page. */
  sections = new Map()
  /** SVG by file name. */
  pictures = new Map()
  /** Sections that could not be measured on this machine: title and reason. */
  leftOut = []
  /** Versions of the tools that were compared. */
  versions = [`Node ${process.versions.node}`]
  /** What differs from the defaults of a full run, as words of the command. */
  #command
  #benchmark
  #ends = []
  #folder

  /** `benchmark`: its `options` with their defaults, what `smoke` changes of them, and `run(bench)`. */
  constructor(name, { benchmark, words, isSmoke = false }) {
    this.name = name
    this.isSmoke = isSmoke
    this.given = { ...readOptions(words, benchmark.options ?? {}), ...(isSmoke ? benchmark.smoke : {}) }
    this.#benchmark = benchmark
    this.#command = ['npm run bench --', name, ...words].join(' ')
  }

  async run() {
    const stop = () => void this.#close().then(() => process.exit(1))
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, stop)
    try {
      await this.#benchmark.run(this)
    } finally {
      await this.#close()
      for (const signal of ['SIGTERM', 'SIGINT']) process.removeListener(signal, stop)
    }
  }

  /** An empty folder, which is removed at the end. */
  get folder() {
    if (this.#folder === undefined) {
      const folder = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
      this.#ends.push(() => rmSync(folder, { recursive: true, force: true }))
      this.#folder = folder
    }
    return this.#folder
  }

  /** A new folder below `folder`. */
  makeFolder(name) {
    return mkdtempSync(join(this.folder, `${name}-`))
  }

  /** Calls `end` after the run, in reverse order. The helpers of `src/testing` take this as their context. */
  after(end) {
    this.#ends.push(end)
  }

  /**
   * Calls `measure` while nothing else runs here: DSC_BENCH_ALONE is a command, as `flock FILE`, that waits for the
   * machine and keeps it until the program ends whose words follow.
   */
  async alone(measure) {
    const words = process.env.DSC_BENCH_ALONE?.split(' ')
    if (!words) return measure()
    const holder = spawn(words[0], [...words.slice(1), 'sh', '-c', 'echo && exec cat >&2'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await once(holder.stdout, 'data')
    try {
      return await measure()
    } finally {
      holder.stdin.end()
      await once(holder, 'exit')
    }
  }

  /** A section of the page: lines, or parts of them, each of which may be a list of lines. */
  section(title, ...lines) {
    this.sections.set(title, lines.flat(2).join('\n').trim())
  }

  picture(file, svg) {
    this.pictures.set(file, svg)
  }

  leaveOut(title, why) {
    this.leftOut.push([title, why])
  }

  progress(text) {
    if (!this.isSmoke) process.stderr.write(`${text}\n`)
  }

  /** The command, the day, the machine: what every figure carries. */
  get how() {
    const machine = `${cpus().length} × ${cpus()[0].model.trim()}, load ${loadavg()[0].toFixed(1)} at the end`
    return `\`${this.#command}\`, ${new Date().toISOString().slice(0, 10)}, ${machine}; ${this.versions.join(', ')}.`
  }

  async #close() {
    for (const end of this.#ends.splice(0).toReversed()) await end()
  }
}
