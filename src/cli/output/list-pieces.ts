import { type TableColumn, TableShape } from './text-table.js'

/** A list read page by page, from memory or on demand. */
type Pages<Row> = Iterable<readonly Row[]> | AsyncIterable<readonly Row[]>

/** An answer with one list in it, called `name`, in pieces. */
export async function* formatList<Row>(
  name: string,
  pages: Pages<Row>,
  describe: (row: Row) => object,
): AsyncGenerator<string> {
  yield `{"dsc":1,${JSON.stringify(name)}:[`
  yield* separate(pages, formatElements(describe))
  yield ']}\n'
}

/** `dsc … --ndjson` for a list, in pieces: one answer per line. */
export async function* formatLines<Row>(
  pages: Pages<Row>,
  describe: (row: Row) => object,
): AsyncGenerator<string> {
  for await (const page of pages)
    yield page.map((row) => `${JSON.stringify({ dsc: 1, ...describe(row) })}\n`).join('')
}

/** The elements of a page in JSON, without brackets. */
export function formatElements<Row>(describe: (row: Row) => unknown): (page: readonly Row[]) => string {
  return (page) => JSON.stringify(page.map(describe)).slice(1, -1)
}

/** Pieces separated by commas; empty ones are left out. */
export async function* separate<Page>(
  pages: Iterable<Page> | AsyncIterable<Page>,
  format: (page: Page) => string,
): AsyncGenerator<string> {
  let separator = ''
  for await (const page of pages) {
    const piece = format(page)
    if (piece === '') continue
    yield separator + piece
    separator = ','
  }
}

/** The parts of a table that is written in pieces. */
interface PagedTable<Row> {
  /** Reads the rows; called twice, because the first pass measures the widths. */
  readonly read: () => Pages<Row>
  readonly columns: readonly TableColumn<Row>[]
  /** The text if there are no rows. */
  readonly empty: string
}

/** A table in pieces: it takes the memory of one page of rows. */
export async function* formatPagedTable<Row>(
  table: PagedTable<Row>,
  totalWidth: number | undefined,
): AsyncGenerator<string> {
  const shape = new TableShape(table.columns)
  let isEmpty = true
  for await (const page of table.read()) {
    for (const row of page) shape.measure(row)
    if (page.length > 0) isEmpty = false
  }
  if (isEmpty) {
    yield `${table.empty}\n`
    return
  }
  const { titles, format } = shape.place(totalWidth)
  yield `${titles}\n`
  for await (const page of table.read()) yield page.map((row) => `${format(row)}\n`).join('')
}
