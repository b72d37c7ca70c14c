/** The cursor position in a list. `key` follows a row while rows above it appear and disappear. */
export interface ListPosition {
  readonly key: string | undefined
  readonly index: number
  /** Row of the visible window with the cursor, 0 = first. Keeps the view still while data changes. */
  readonly windowRow: number
}

/** The top of a list. */
export const START: ListPosition = { key: undefined, index: 0, windowRow: 0 }

/** The visible window of a list. */
interface ListView {
  readonly keys: readonly string[]
  /** Number of visible rows. */
  readonly height: number
}

/** A cursor with its visible window. */
interface ListWindow extends ListPosition {
  /** Index of the first visible row. */
  readonly offset: number
}

/**
 * Finds the cursor in rows that may have changed, and the window of `height` rows around it. If its row is gone, the
 * cursor stays at its index; if the row moved, the cursor follows. With the cursor on the first row of an unscrolled
 * list the view stays at the top.
 */
export function placeList(position: ListPosition, { keys, height }: ListView): ListWindow {
  const rows = Math.max(1, height)
  if (keys.length === 0) return { key: undefined, index: 0, windowRow: 0, offset: 0 }
  const found =
    position.key === undefined || keys[position.index] === position.key
      ? position.index
      : keys.indexOf(position.key)
  const index = clamp(found === -1 ? position.index : found, 0, keys.length - 1)
  const windowRow = clamp(position.windowRow, 0, rows - 1)
  const offset = clamp(index - windowRow, 0, Math.max(0, keys.length - rows))
  return { key: keys[index], index, windowRow: index - offset, offset }
}

/** Moves the cursor by `rows`; the window scrolls only if the cursor would leave it. */
export function moveBy(window: ListWindow, rows: number, { keys, height }: ListView): ListPosition {
  const index = clamp(window.index + rows, 0, Math.max(0, keys.length - 1))
  const windowRow = clamp(window.windowRow + (index - window.index), 0, Math.max(0, height - 1))
  return { key: keys[index], index, windowRow }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}
