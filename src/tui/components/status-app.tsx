import { useApp, useInput, useWindowSize } from 'ink'
import { type ReactElement, useCallback, useEffect, useEffectEvent, useMemo, useRef, useState } from 'react'
import type { StatusReader } from '../../cache/status/status-reader.js'
import type { WatchIntervals } from '../../cache/status/watch-status.js'
import type { RecordEvent } from '../../model/record-event.js'
import { useActions } from '../hooks/use-actions.js'
import { useCopyHistory } from '../hooks/use-copy-history.js'
import { useDay } from '../hooks/use-day.js'
import { useReport } from '../hooks/use-report.js'
import { useStatus } from '../hooks/use-status.js'
import type { MouseReporting } from '../mouse-reporting.js'
import type { StatusActions } from '../status-actions.js'
import { handleKey } from '../view/keys/handle-key.js'
import type { KeyOutcome, KeyTarget } from '../view/keys/key-press.js'
import { selectRows } from '../view/lists/select-rows.js'
import { findSpot, type Spot } from '../view/mouse/find-spot.js'
import { handleMouse } from '../view/mouse/handle-mouse.js'
import type { MouseReport } from '../view/mouse/mouse-report.js'
import { drawScreen, findShownCopy, findShownLease } from '../view/screen.js'
import type { ReportText, ScreenInput } from '../view/screen-input.js'
import { planScreen } from '../view/screen-plan.js'
import { type Effect, FIRST_SCREEN, type ScreenState } from '../view/screen-state.js'
import type { Glyphs } from '../view/text/glyphs.js'
import type { ThemeName } from '../view/text/theme.js'
import { readKeyPresses } from './read-key-presses.js'
import { ScreenLines } from './screen-lines.js'

/** The readers and actions of the live screen. */
export interface ScreenMeans {
  readonly reader: StatusReader
  /** The name of this node. */
  readonly ownNode: string
  readonly readHistory: (copyId: string) => Promise<readonly RecordEvent[]>
  /** Events of the last 24 hours, of the kinds `DAY_EVENTS`. */
  readonly readDay: () => Promise<readonly RecordEvent[]>
  /** The output of `dsc report` over the last `sinceMs`. */
  readonly readReport: (sinceMs: number) => Promise<ReportText>
  readonly actions: StatusActions
  readonly nowMs: () => number
}

interface StatusAppProps extends ScreenMeans {
  readonly intervals: WatchIntervals
  readonly glyphs: Glyphs
  /** The initial theme; undefined: no colours at all. */
  readonly theme: ThemeName | undefined
  readonly mouse: MouseReporting
}

/** The live screen: reads, draws, and turns keys into actions. */
export function StatusApp(props: StatusAppProps): ReactElement {
  const { exit, suspendTerminal } = useApp()
  const size = useWindowSize()
  const [isSuspended, setSuspended] = useState(false)
  useTick(1000)
  const { snapshot, problem, throughput, refresh } = useStatus(props.reader, {
    intervals: props.intervals,
    nowMs: props.nowMs,
    isPaused: isSuspended,
  })
  const { state, latest, update } = useScreenState(props.theme)
  const { tab, grouped, filter, sorts, scope } = state
  const rows = useMemo(
    () => selectRows(snapshot, { tab, grouped, filter, sorts, scope }, throughput),
    [snapshot, tab, grouped, filter, sorts, scope, throughput],
  )
  const findStageLease = (copyId: string) =>
    snapshot?.leases.find((lease) => lease.copyId === copyId && lease.purpose === 'stage')
  const act = useActions(props.actions, update, { refresh, findStageLease })
  const plan = planScreen(state, size)
  const isDetailShown = plan.sideColumns > 0 || state.detailCopyId !== undefined
  const shown = isDetailShown ? findShownCopy({ snapshot, state, rows }, plan.listHeight) : undefined
  const copyHistory = useCopyHistory(props.readHistory, shown, snapshot)
  const day = useDay(props.readDay, snapshot)
  const report = useReport(props.readReport, state.mode.kind === 'report' ? state.mode.sinceMs : undefined)

  const apply = (effect: Effect) => {
    switch (effect.kind) {
      case 'quit':
        return exit()
      case 'refresh':
        return refresh()
      case 'suspend':
        setSuspended(true)
        props.mouse.off()
        void suspendTerminal(waitForContinue).finally(() => setSuspended(false))
        return
      default:
        return act(effect)
    }
  }
  const nowMs = props.nowMs()
  const utcOffsetMinutes = -new Date(nowMs).getTimezoneOffset()
  const context = { nowMs, utcOffsetMinutes, glyphs: props.glyphs, throughput }
  const drawn = { snapshot, problem, state, rows, copyHistory, day, report, size, context }

  const handle = (react: (input: ScreenInput, target: KeyTarget) => KeyOutcome) => {
    const current = latest.current
    const view =
      current === state
        ? drawn
        : { ...drawn, state: current, rows: selectRows(snapshot, current, throughput) }
    const height = planScreen(current, size).listHeight
    const outcome = react(view, {
      snapshot,
      rows: view.rows,
      height,
      copy: findShownCopy(view, height),
      lease: findShownLease(view, height),
      whyNotCancel: (copyId) => props.actions.whyNotCancel(findStageLease(copyId)),
      ownNode: props.ownNode,
    })
    update(() => outcome.state)
    if (outcome.effect) apply(outcome.effect)
  }
  useInput((input, key) => {
    for (const press of readKeyPresses(input, key))
      handle((view, target) => handleKey(view.state, press, target))
  })
  useMouse(state.isMouseOn && !isSuspended ? props.mouse : undefined, (report) =>
    handle((view, target) => {
      const spot: Spot = report.kind === 'click' ? findSpot(view, report) : { kind: 'nothing' }
      return handleMouse(view.state, report, { ...target, spot })
    }),
  )

  const lines = drawScreen(drawn)
  return <ScreenLines lines={lines} theme={props.theme && state.theme} />
}

/** The user's choices; `latest` has them before React has drawn them: keys arrive faster. */
function useScreenState(theme: ThemeName = FIRST_SCREEN.theme) {
  const [state, setState] = useState<ScreenState>({ ...FIRST_SCREEN, theme })
  const latest = useRef(state)
  const update = useCallback((change: (before: ScreenState) => ScreenState) => {
    latest.current = change(latest.current)
    setState(latest.current)
  }, [])
  return { state, latest, update }
}

/** Redraws every `intervalMs`, so that times advance while nothing else happens. */
function useTick(intervalMs: number): void {
  const [, setTicks] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
}

/** Listens to the mouse while reporting is on. */
function useMouse(mouse: MouseReporting | undefined, react: (report: MouseReport) => void): void {
  const tell = useEffectEvent(react)
  useEffect(() => {
    mouse?.on((report) => tell(report))
    return () => mouse?.off()
  }, [mouse])
}

/** How long to wait for a stop signal to take effect, ms: an orphaned process group never stops. */
const STOP_EFFECT_MS = 250

/**
 * Stops this process and its group, like Ctrl-Z in a shell, and resolves when it continues. Hand the terminal back
 * before: in raw mode it sends no signals itself.
 */
async function waitForContinue(): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      process.off('SIGCONT', done)
      resolve()
    }
    const timer = setTimeout(done, STOP_EFFECT_MS)
    process.once('SIGCONT', done)
    // 0: the whole group, so that a shell or npx in front of us sees the stop too.
    process.kill(0, 'SIGTSTP')
  })
}
