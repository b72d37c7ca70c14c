import { render } from 'ink'
import type { WatchIntervals } from '../cache/status/watch-status.js'
import { type ScreenMeans, StatusApp } from './components/status-app.js'
import { MouseReporting } from './mouse-reporting.js'
import { chooseGlyphs } from './view/text/glyphs.js'
import { chooseTheme, type ThemeName } from './view/text/theme.js'

/** The inputs of the live screen. */
export interface StatusScreenOptions extends ScreenMeans {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Default: the terminal's colours, or the light theme if the terminal reports a light background. */
  readonly theme?: ThemeName | undefined
  /** Default: every 500 ms if the record cannot report changes; else at changes, and every 5 s. */
  readonly intervals?: WatchIntervals
  /** Closes the screen and releases the terminal. */
  readonly signal: AbortSignal
}

const DEFAULT_INTERVALS: WatchIntervals = { pollMs: 500, quietMs: 5000, pauseMs: 250 }

/** Takes over the terminal until the user quits or `signal` aborts; rejects if a component throws. */
export async function showStatusScreen({
  environment,
  theme = chooseTheme(environment),
  intervals = DEFAULT_INTERVALS,
  signal,
  ...means
}: StatusScreenOptions): Promise<void> {
  const mouse = new MouseReporting(process)
  const screen = render(
    <StatusApp
      {...means}
      intervals={intervals}
      glyphs={chooseGlyphs(environment)}
      theme={environment.NO_COLOR ? undefined : theme}
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
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  // A closed terminal answers every write, and the end of its raw mode, with EIO: that ends the screen without a crash.
  // The listeners stay, because output of the ending command meets the same terminal.
  process.stdout.on('error', close)
  process.stderr.on('error', () => {})
  process.stdin.on('error', close)
  try {
    await screen.waitUntilExit()
  } finally {
    mouse.off()
    signal.removeEventListener('abort', close)
  }
}
