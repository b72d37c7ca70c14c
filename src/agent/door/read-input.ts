// Everything that comes through the door is checked here, field by field: anybody on the machine may send anything.

/** The fields of one request. */
export type Fields = Readonly<Record<string, unknown>>

const MAX_TEXT_CHARACTERS = 4096
const MAX_TEXTS = 1000

/** Reads an object. Throws a RangeError that names what was expected; so do all functions below. */
export function readFields(raw: unknown, name: string): Fields {
  if (typeof raw === 'object' && raw !== null && !Array.isArray(raw)) return raw as Fields
  throw new RangeError(`${name}: expected an object, found ${show(raw)}`)
}

/** A text without control characters. */
export function readText(fields: Fields, name: string): string {
  const raw = fields[name]
  if (typeof raw === 'string' && raw.length <= MAX_TEXT_CHARACTERS && !/\p{Cc}/u.test(raw)) return raw
  throw new RangeError(
    `${name}: expected a line of at most ${MAX_TEXT_CHARACTERS} characters, found ${show(raw)}`,
  )
}

export function readNumber(fields: Fields, name: string): number {
  const raw = fields[name]
  if (typeof raw === 'number' && Number.isSafeInteger(raw)) return raw
  throw new RangeError(`${name}: expected a whole number, found ${show(raw)}`)
}

export function readTexts(fields: Fields, name: string): readonly string[] {
  const raw = fields[name]
  if (Array.isArray(raw) && raw.length <= MAX_TEXTS)
    return raw.map((_, index) => readText(raw as unknown as Fields, String(index)))
  throw new RangeError(`${name}: expected a list of at most ${MAX_TEXTS} texts, found ${show(raw)}`)
}

export function readFlag(fields: Fields, name: string): boolean {
  const raw = fields[name]
  if (typeof raw === 'boolean' || raw === undefined) return raw === true
  throw new RangeError(`${name}: expected true or false, found ${show(raw)}`)
}

/** The field if it is there and not null. */
export function readOptional<T>(
  fields: Fields,
  name: string,
  read: (fields: Fields, name: string) => T,
): T | undefined {
  return fields[name] === undefined || fields[name] === null ? undefined : read(fields, name)
}

/** Those of the named fields that are there, each read by its function. */
export function pickFields<
  Readers extends Readonly<Record<string, (fields: Fields, name: string) => unknown>>,
>(fields: Fields, readers: Readers): { readonly [Name in keyof Readers]?: ReturnType<Readers[Name]> } {
  const found = Object.entries(readers).flatMap(([name, read]) => {
    const value = readOptional(fields, name, read)
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(found) as { readonly [Name in keyof Readers]?: ReturnType<Readers[Name]> }
}

function show(raw: unknown): string {
  return String(JSON.stringify(raw)).slice(0, 80)
}
