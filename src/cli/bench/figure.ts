/** The parts of a node that dsc waits for. */
export type NodePart = 'disk' | 'record' | 'store'

/** For rates, more is better; for times, less. */
export type Unit = 'bytesPerSecond' | 'filesPerSecond' | 'ms'

/** A measured value. */
export interface Figure {
  readonly part: NodePart
  readonly what: keyof typeof NEEDS
  readonly value: number
}

/** A figure, compared with what dsc needs. */
export interface JudgedFigure extends Figure {
  readonly unit: Unit
  readonly needed: number
  readonly isEnough: boolean
}

/**
 * The least that dsc needs of a node, so that jobs do not wait for it.
 *
 * | figure                        | because                                                                      |
 * |-------------------------------|------------------------------------------------------------------------------|
 * | writes, reads: 200 MB/s       | a node with eight GPUs reads about that many images; a slower disk starves it |
 * | small files: 100/s            | each file is flushed before the copy is called ready                         |
 * | answers: 20 ms                | a warm `dsc prepare` asks a few times, each job once                         |
 * | keeps a change: 50 ms         | 64 jobs that start at once stand in one line: 3 s for the last               |
 * | sends: 100 MB/s               | 1 TB in three hours                                                          |
 * | sends its first byte: 500 ms  | what each object takes however small it is                                   |
 */
export const NEEDS = {
  writes: { unit: 'bytesPerSecond', needed: 200e6 },
  reads: { unit: 'bytesPerSecond', needed: 200e6 },
  'small files': { unit: 'filesPerSecond', needed: 100 },
  answers: { unit: 'ms', needed: 20 },
  'keeps a change': { unit: 'ms', needed: 50 },
  sends: { unit: 'bytesPerSecond', needed: 100e6 },
  'sends its first byte': { unit: 'ms', needed: 500 },
} as const satisfies Readonly<Record<string, { readonly unit: Unit; readonly needed: number }>>

/** Compares figures with what dsc needs. Pure. */
export function judgeFigures(figures: readonly Figure[]): readonly JudgedFigure[] {
  return figures.map((figure) => {
    const { unit, needed } = NEEDS[figure.what]
    return { ...figure, unit, needed, isEnough: shareOfNeeded({ ...figure, unit, needed }) >= 1 }
  })
}

/** The figure furthest below what dsc needs; undefined if all are good enough. Pure. */
export function findSlowest(figures: readonly JudgedFigure[]): JudgedFigure | undefined {
  return figures
    .filter(({ isEnough }) => !isEnough)
    .toSorted((a, b) => shareOfNeeded(a) - shareOfNeeded(b))
    .at(0)
}

/** Ratio of the figure to what dsc needs: 1 is just enough. */
function shareOfNeeded({ value, unit, needed }: Pick<JudgedFigure, 'value' | 'unit' | 'needed'>): number {
  return unit === 'ms' ? needed / value : value / needed
}
