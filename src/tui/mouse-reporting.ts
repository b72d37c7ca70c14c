import { type MouseReport, readMouseReports } from './view/mouse/mouse-report.js'

/** Buttons and wheel (1000), with cells as numbers of any size (1006). */
const ON = '\u001b[?1000h\u001b[?1006h'
const OFF = '\u001b[?1006l\u001b[?1000l'

/** Asks the terminal to report its mouse, and undoes that however the process ends, except by SIGKILL. */
export class MouseReporting {
  readonly #terminal: Pick<NodeJS.Process, 'stdin' | 'stdout'>
  #stop: (() => void) | undefined

  constructor(terminal: Pick<NodeJS.Process, 'stdin' | 'stdout'>) {
    this.#terminal = terminal
  }

  /** Ink drops input that is not a key, so `data` provides everything it read. */
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
      // A remaining listener would swallow input meant for the terminal's next reader.
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
