import { type MouseReport, readMouseReports } from './view/mouse/mouse-report.js'

/** Buttons and wheel (1000), with cells as numbers of any size (1006). */
const ON = '\u001b[?1000h\u001b[?1006h'
const OFF = '\u001b[?1006l\u001b[?1000l'

/** Asks the terminal to report its mouse, and takes that back however the process ends, but by SIGKILL. */
export class MouseReporting {
  readonly #terminal: Pick<NodeJS.Process, 'stdin' | 'stdout'>
  #stop: (() => void) | undefined

  constructor(terminal: Pick<NodeJS.Process, 'stdin' | 'stdout'>) {
    this.#terminal = terminal
  }

  /** Ink keeps what is no key to itself; `data` tells what it has read. */
  on(tell: (report: MouseReport) => void): void {
    this.off()
    const { stdin, stdout } = this.#terminal
    let rest = ''
    const read = (chunk: string | Buffer) => {
      const found = readMouseReports(rest + chunk.toString())
      rest = found.rest
      for (const report of found.reports) tell(report)
    }
    const off = () => this.off()
    this.#stop = () => {
      process.off('exit', off)
      // While it hears the stream, it would read what is typed for whoever has the terminal next.
      stdin.off('data', read)
      stdout.write(OFF)
    }
    process.once('exit', off)
    stdin.on('data', read)
    stdout.write(ON)
  }

  off(): void {
    const stop = this.#stop
    this.#stop = undefined
    stop?.()
  }
}
