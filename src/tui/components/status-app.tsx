import { useApp, useInput, useWindowSize } from 'ink'
import { type ReactElement, useCallback, useMemo, useRef, useState } from 'react'
import { isDscError } from '../../failure/dsc-error.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { StatusReader } from '../../stage/status-reader.js'
import type { WatchIntervals } from '../../stage/watch-status.js'
import { useCopyHistory } from '../hooks/use-copy-history.js'
import { useStatus } from '../hooks/use-status.js'
import { useTick } from '../hooks/use-tick.js'
import type { StatusActions } from '../status-actions.js'
import { waitForContinue } from '../stop-process.js'
import type { Glyphs } from '../view/glyphs.js'
import { handleKey } from '../view/handle-key.js'
import { drawScreen, findShownCopy } from '../view/screen.js'
import { planScreen } from '../view/screen-plan.js'
import { type Effect, FIRST_SCREEN, type ScreenState } from '../view/screen-state.js'
import { selectRows } from '../view/select-rows.js'
import { readKeyPresses } from './key-press.js'
import { ScreenLines } from './screen-lines.js'

export interface StatusAppProps {
  readonly reader: StatusReader
  readonly readHistory: (copyId: string, dataset: string) => Promise<readonly RecordEvent[]>
  readonly actions: StatusActions
  readonly intervals: WatchIntervals
  readonly nowMs: () => number
  readonly glyphs: Glyphs
  readonly isColoured: boolean
}

/** The live screen: reads, draws, and turns keys into actions. */
export function StatusApp(props: StatusAppProps): ReactElement {
  const { exit, suspendTerminal } = useApp()
  const size = useWindowSize()
  const [isSuspended, setSuspended] = useState(false)
  useTick(1000)
  const { snapshot, problem, history, refresh } = useStatus(props.reader, {
    intervals: props.intervals,
    nowMs: props.nowMs,
    isPaused: isSuspended,
  })
  const [state, setState] = useState<ScreenState>(FIRST_SCREEN)
  const latest = useRef(state)
  const update = useCallback((change: (before: ScreenState) => ScreenState) => {
    latest.current = change(latest.current)
    setState(latest.current)
  }, [])

  const rows = useMemo(
    () => selectRows(snapshot, state.tab, state.filter, state.sort),
    [snapshot, state.tab, state.filter, state.sort],
  )
  const plan = planScreen(snapshot ?? { nodes: [], transfers: [] }, state, size)
  const shown = findShownCopy(snapshot, state, rows, plan.listHeight)
  const isDetailShown = plan.sideColumns > 0 || state.detailCopyId !== undefined
  const copyHistory = useCopyHistory(props.readHistory, isDetailShown ? shown : undefined, snapshot)

  const apply = (effect: Effect) => {
    const run = (doing: string, done: string, work: Promise<void>) => {
      update((before) => ({ ...before, message: { text: doing, isError: false } }))
      work.then(
        () => {
          update((before) => ({ ...before, message: { text: done, isError: false } }))
          refresh()
        },
        (error: unknown) =>
          update((before) => ({ ...before, message: { text: describeError(error), isError: true } })),
      )
    }
    switch (effect.kind) {
      case 'quit':
        return exit()
      case 'refresh':
        return refresh()
      case 'suspend':
        setSuspended(true)
        void suspendTerminal(waitForContinue).finally(() => setSuspended(false))
        return
      case 'lock':
        return run(
          `locking ${effect.dataset}`,
          `locked ${effect.dataset}`,
          attempt(() => props.actions.lock(effect.copyId, effect.reason)),
        )
      case 'unlock':
        return run(
          `unlocking ${effect.dataset}`,
          `unlocked ${effect.dataset}`,
          attempt(() => props.actions.unlock(effect.copyId)),
        )
      case 'evict':
        return run(
          `evicting ${effect.dataset}`,
          `evicted ${effect.dataset}`,
          attempt(() => props.actions.evict(effect.copyId)),
        )
      case 'prepare':
        return run(
          `preparing ${effect.dataset}`,
          `${effect.dataset} is ready`,
          attempt(() => props.actions.prepare(effect.dataset)),
        )
    }
  }

  useInput((input, key) => {
    for (const press of readKeyPresses(input, key)) {
      const current = latest.current
      const own = current === state ? rows : selectRows(snapshot, current.tab, current.filter, current.sort)
      const { listHeight } = planScreen(snapshot ?? { nodes: [], transfers: [] }, current, size)
      const target = {
        rows: own,
        height: listHeight,
        copy: findShownCopy(snapshot, current, own, listHeight),
      }
      const outcome = handleKey(current, press, target)
      update(() => outcome.state)
      if (outcome.effect) apply(outcome.effect)
    }
  })

  const nowMs = props.nowMs()
  const lines = drawScreen({
    snapshot,
    problem,
    state,
    rows,
    copyHistory,
    size,
    context: {
      nowMs,
      utcOffsetMinutes: -new Date(nowMs).getTimezoneOffset(),
      glyphs: props.glyphs,
      history,
    },
  })
  return <ScreenLines lines={lines} isColoured={props.isColoured} />
}

/** Lets an action that throws at once fail like one that rejects. */
async function attempt(work: () => Promise<void>): Promise<void> {
  await work()
}

function describeError(error: unknown): string {
  if (isDscError(error)) return error.hint ? `${error.message} (try: ${error.hint})` : error.message
  return error instanceof Error ? error.message : String(error)
}
