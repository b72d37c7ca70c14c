import { render } from 'ink'
import type { StatusReader } from '../cache/status/status-reader.js'
import type { WatchIntervals } from '../cache/status/watch-status.js'
import type { RecordEvent } from '../model/record-event.js'
import { StatusApp } from './components/status-app.js'
import { MouseReporting } from './mouse-reporting.js'
import type { StatusActions } from './status-actions.js'
import type { ReportText } from './view/screen-input.js'
import { chooseGlyphs } from './view/text/glyphs.js'
import { chooseTheme, type ThemeName } from './view/text/theme.js'

/** The inputs of the live screen. */
export interface StatusScreenOptions {
  readonly reader: StatusReader
  /** The name of this node. */
  readonly ownNode: string
  readonly readHistory: (copyId: string, dataset: string) => Promise<readonly RecordEvent[]>
  /** Events of the last 24 hours, of the kinds `DAY_EVENTS`. */
  readonly readDay: () => Promise<readonly RecordEvent[]>
  /** The output of `dsc report` over the last `sinceMs`. */
  readonly readReport: (sinceMs: number) => Promise<ReportText>
  readonly actions: StatusActions
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly nowMs: () => number
  /** Default: the terminal's colours, or the light theme if the terminal reports a light background. */
  readonly theme?: ThemeName | undefined
  /** Default: every 500 ms if the record cannot report changes; else at changes, and every 5 s. */
  readonly intervals?: WatchIntervals
  /** Closes the screen and releases the terminal. */
  readonly signal: AbortSignal
}

const DEFAULT_INTERVALS: WatchIntervals = { pollMs: 500, quietMs: 5000, pauseMs: 250 }

/** Takes over the terminal until the user quits or `signal` aborts; rejects if a component throws. */
export async function showStatusScreen(options: StatusScreenOptions): Promise<void> {
  const isColoured = !options.environment.NO_COLOR
  const mouse = new MouseReporting(process)
  const screen = render(
    <StatusApp
      reader={options.reader}
      ownNode={options.ownNode}
      readHistory={options.readHistory}
      readDay={options.readDay}
      readReport={options.readReport}
      actions={options.actions}
      intervals={options.intervals ?? DEFAULT_INTERVALS}
      nowMs={options.nowMs}
      glyphs={chooseGlyphs(options.environment)}
      theme={isColoured ? (options.theme ?? chooseTheme(options.environment)) : undefined}
      mouse={mouse}
    />,
    {
      alternateScreen: true,
      // Set explicitly: ink takes a terminal for a log if the variable CI is set.
      interactive: true,
      incrementalRendering: true,
      exitOnCtrlC: false,
    },
  )
  const close = () => screen.unmount()
  options.signal.addEventListener('abort', close, { once: true })
  if (options.signal.aborted) close()
  // A closed terminal answers every write, and the end of its raw mode, with EIO: that ends the screen without a crash.
  // The listeners stay, because output of the ending command meets the same terminal.
  process.stdout.on('error', close)
  process.stderr.on('error', () => {})
  process.stdin.on('error', close)
  try {
    await screen.waitUntilExit()
  } finally {
    mouse.off()
    options.signal.removeEventListener('abort', close)
  }
}
