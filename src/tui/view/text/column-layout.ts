/** The preferred width of a column, and its priority when space is short. */
export interface ColumnSpec {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** Preferred width in cells. */
  readonly width: number
  /** Minimum width in cells before it is dropped; default: `width`, it never shrinks. */
  readonly minWidth?: number
  /** Columns with the highest number are dropped first; without a number, a column always stays. */
  readonly dropOrder?: number
  /** Fraction of the remaining space. */
  readonly grow?: number
}

/** A column with its place and width. */
interface PlacedColumn {
  /** Index in the specification. */
  readonly index: number
  readonly width: number
}

/**
 * Fits columns into `totalWidth` cells with `gap` cells between them. Depends only on the widths, never on the visible
 * rows, so that columns stay in place while scrolling.
 */
export function layoutColumns(
  specs: readonly ColumnSpec[],
  totalWidth: number,
  gap: number,
): readonly PlacedColumn[] {
  const kept = specs.map((spec, index) => ({ spec, index, width: spec.width }))
  const excess = () =>
    kept.reduce((sum, column) => sum + column.width, 0) + gap * (kept.length - 1) - totalWidth
  const least = () =>
    kept.reduce((sum, column) => sum + (column.spec.minWidth ?? column.spec.width), 0) +
    gap * (kept.length - 1)

  while (least() > totalWidth && kept.some((column) => column.spec.dropOrder !== undefined)) {
    const first = kept.reduce((a, b) => ((b.spec.dropOrder ?? -1) > (a.spec.dropOrder ?? -1) ? b : a))
    kept.splice(kept.indexOf(first), 1)
  }
  while (excess() > 0) {
    const shrinkable = kept.filter((column) => column.width > (column.spec.minWidth ?? column.spec.width))
    const widest = shrinkable.toSorted((a, b) => b.width - a.width)[0]
    if (widest === undefined) break
    widest.width -= 1
  }
  const growing = kept.reduce((sum, column) => sum + (column.spec.grow ?? 0), 0)
  const spare = -excess()
  if (spare > 0 && growing > 0) {
    let given = 0
    let shares = 0
    for (const column of kept) {
      shares += column.spec.grow ?? 0
      const upTo = Math.floor((spare * shares) / growing)
      column.width += upTo - given
      given = upTo
    }
  }
  return kept.map(({ index, width }) => ({ index, width }))
}

/**
 * Takes cells from the widest columns until all fit into `totalWidth`, below their minimum if necessary: on a screen,
 * truncated cells say more than missing columns.
 */
export function squeezeColumns(
  columns: readonly PlacedColumn[],
  totalWidth: number,
  gap: number,
): readonly PlacedColumn[] {
  const squeezed = columns.map((column) => ({ ...column }))
  let excess = squeezed.reduce((sum, { width }) => sum + width, gap * (squeezed.length - 1)) - totalWidth
  for (; excess > 0; excess -= 1) {
    const widest = squeezed.reduce((a, b) => (b.width > a.width ? b : a))
    if (widest.width <= 1) break
    widest.width -= 1
  }
  return squeezed
}
