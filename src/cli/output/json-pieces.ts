/** Array elements per piece: enough to be fast, few enough that no piece is large. */
const ELEMENTS_PER_PIECE = 1000

/**
 * Yields the text of `JSON.stringify(data)` in pieces, so that a list of 100,000 copies is never one string. Iterable
 * values of `data` become lists; each element is requested when it is written.
 */
export function* formatJsonPieces(data: unknown): Generator<string> {
  if (!isPlainObject(data)) {
    yield JSON.stringify(data)
    return
  }
  let separator = '{'
  for (const [name, value] of Object.entries(data)) {
    if (value === undefined) continue
    const begin = `${separator}${JSON.stringify(name)}:`
    if (isIterable(value)) {
      yield `${begin}[`
      yield* formatElements(value)
      yield ']'
    } else yield `${begin}${JSON.stringify(value)}`
    separator = ','
  }
  yield separator === '{' ? '{}' : '}'
}

function* formatElements(elements: Iterable<unknown>): Generator<string> {
  let gathered: unknown[] = []
  let separator = ''
  for (const element of elements) {
    gathered.push(element)
    if (gathered.length < ELEMENTS_PER_PIECE) continue
    yield separator + JSON.stringify(gathered).slice(1, -1)
    separator = ','
    gathered = []
  }
  if (gathered.length > 0) yield separator + JSON.stringify(gathered).slice(1, -1)
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value
}

function isPlainObject(data: unknown): data is Record<string, unknown> {
  return typeof data === 'object' && data !== null && Object.getPrototypeOf(data) === Object.prototype
}
