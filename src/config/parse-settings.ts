import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml'
import type { z } from 'zod'
import { DscError } from '../failure/dsc-error.js'
import { findClosest } from '../model/find-closest.js'
import { createJsonSchema, type FileSettings, fileSchema } from './schema.js'

/** A checked dsc.yaml and the line of each of its values, by dotted key (`cache.root`). Plain JSON. */
export interface ParsedSettings {
  readonly settings: FileSettings
  readonly lines: Readonly<Record<string, number>>
}

/**
 * Checks the text of a dsc.yaml. Throws CONFIG_INVALID with every mistake: its line and column, what was expected, and
 * what was found. `fileName` is only for that message. Loads yaml and zod, 40 ms.
 */
export function parseSettings(text: string, fileName: string): ParsedSettings {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, merge: true, prettyErrors: false })
  const broken = [...document.errors, ...document.warnings]
  if (broken.length > 0) {
    fail(
      broken.map((error) => {
        const { line, col } = counter.linePos(error.pos[0])
        const key = /^[^:\s]+/.exec(text.slice(error.pos[0]))?.[0]
        const problem =
          error.code === 'DUPLICATE_KEY' && key ? `${key} is set twice, keep one` : error.message
        return `${fileName}:${line}:${col}: ${problem}`
      }),
    )
  }
  const raw = withSources(withoutNulls(readValues(document, fileName, counter)) ?? {})
  const parsed = fileSchema.safeParse(raw)
  if (!parsed.success) {
    const schema = createJsonSchema()
    fail(
      explainMistakes(parsed.error.issues, {
        fileName,
        document,
        lines: counter,
        raw,
        knownKeys: (path) => listKeys(schema, path),
      }),
    )
  }
  const lines: Record<string, number> = {}
  const noteLines = (value: unknown, path: readonly string[]) => {
    if (path.length > 0) lines[path.join('.')] = findLine(document, counter, path).line
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [key, child] of Object.entries(value)) noteLines(child, [...path, key])
  }
  noteLines(raw, [])
  return { settings: parsed.data, lines }
}

/** The values of a document. Resolving its aliases can fail only here: they may refer to nothing, or to themselves. */
function readValues(document: Document, fileName: string, counter: LineCounter): unknown {
  const anchors = new Map<string, unknown>()
  const mistakes: string[] = []
  visit(document, (_, node, path) => {
    if ((isScalar(node) || isCollection(node)) && node.anchor) anchors.set(node.anchor, node)
    if (!isAlias(node)) return
    const found = anchors.get(node.source)
    const { line, col } = counter.linePos(node.range?.[0] ?? 0)
    const at = `${fileName}:${line}:${col}: `
    if (found === undefined) mistakes.push(`${at}no &${node.source} stands before *${node.source}`)
    else if (path.some((parent) => parent === found))
      mistakes.push(`${at}*${node.source} stands inside of what it stands for`)
  })
  if (mistakes.length > 0) fail(mistakes)
  try {
    return document.toJS()
  } catch (error) {
    fail([`${fileName}: ${(error as Error).message}`])
  }
}

function fail(mistakes: readonly string[]): never {
  // Invalid text may still contain a password.
  const message = mistakes.join('\n     ').replace(/:\/\/[^/@\s"]*@/g, '://')
  throw new DscError('CONFIG_INVALID', message, {
    hint: 'dsc config --schema prints every key with its meaning',
  })
}

/** `key:` with nothing after it means that the key is not set: people comment out the lines below it. */
function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined
  if (typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, child]) => [key, withoutNulls(child)] as const)
      .filter(([, child]) => child !== undefined),
  )
}

/** `flowers: s3://bucket/flowers/` is short for a dataset with this source. */
function withSources(raw: unknown): unknown {
  const { datasets } = raw as { datasets?: unknown }
  if (typeof datasets !== 'object' || datasets === null || Array.isArray(datasets)) return raw
  const long = Object.entries(datasets).map(([name, value]) => [
    name,
    typeof value === 'string' ? { source: value } : value,
  ])
  return { ...(raw as object), datasets: Object.fromEntries(long) }
}

/** Keys that a JSON Schema allows at a path. */
function listKeys(schema: object, path: readonly PropertyKey[]): readonly string[] {
  interface Level {
    readonly properties?: Readonly<Record<PropertyKey, Level>>
    readonly additionalProperties?: Level
    readonly anyOf?: readonly Level[]
  }
  const level = path.reduce<Level | undefined>((parent, key) => {
    const choices = parent ? [parent, ...(parent.anyOf ?? [])] : []
    return choices.map(({ properties }) => properties?.[key]).find(Boolean) ?? parent?.additionalProperties
  }, schema)
  return Object.keys(level?.properties ?? {})
}

type Path = readonly PropertyKey[]

/** The line and column of the value at `path` in the YAML text; for a missing value, those of its nearest parent. */
function findLine(document: Document, lines: LineCounter, path: Path): { line: number; column: number } {
  for (let length = path.length; length > 0; length -= 1) {
    const parent = document.getIn(path.slice(0, length - 1), true)
    const pair = isMap(parent)
      ? parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(path[length - 1]))
      : undefined
    const node = length === path.length ? (pair?.value ?? document.getIn(path, true)) : pair?.key
    const offset = isNode(node) ? node.range?.[0] : undefined
    if (offset !== undefined) {
      const position = lines.linePos(offset)
      return { line: position.line, column: position.col }
    }
  }
  return { line: 1, column: 1 }
}

/**
 * Turns zod's issues into sentences a person can act on, in the order of the file: `dsc.yaml:4:3: cache: unknown key
 * maxDataset, did you mean maxDatasets?`
 */
function explainMistakes(
  issues: readonly z.core.$ZodIssue[],
  options: {
    fileName: string
    document: Document
    lines: LineCounter
    raw: unknown
    /** Keys that the schema allows at a path. */
    knownKeys: (path: Path) => readonly string[]
  },
): string[] {
  const { fileName, document, lines, raw } = options
  const mistakes = issues.flatMap((issue) => {
    const where = formatPath(issue.path)
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => {
        const close = findClosest(key, options.knownKeys(issue.path))
        const known = options.knownKeys(issue.path).join(', ')
        return {
          ...findKey(document, lines, [...issue.path, key]),
          text: `${where}unknown key ${key}, ${close ? `did you mean ${close}?` : `expected one of ${known}`}`,
        }
      })
    }
    const found = issue.path.reduce<unknown>(
      (value, key) => (value as Record<PropertyKey, unknown>)?.[key],
      raw,
    )
    return [
      {
        ...findLine(document, lines, issue.path),
        text:
          where +
          (issue.code === 'custom'
            ? issue.message
            : `expected ${expected(issue)}, found ${found === undefined ? 'nothing' : JSON.stringify(found)}`),
      },
    ]
  })
  return mistakes
    .toSorted((a, b) => a.line - b.line || a.column - b.column)
    .map(({ line, column, text }) => `${fileName}:${line}:${column}: ${shorten(text)}`)
}

function findKey(document: Document, lines: LineCounter, path: Path): { line: number; column: number } {
  const parent = document.getIn(path.slice(0, -1), true)
  const pair = isMap(parent)
    ? parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(path.at(-1)))
    : undefined
  const offset = isNode(pair?.key) ? pair.key.range?.[0] : undefined
  if (offset === undefined) return findLine(document, lines, path)
  const position = lines.linePos(offset)
  return { line: position.line, column: position.col }
}

function formatPath(path: Path): string {
  return path.length === 0 ? '' : `${path.map(String).join('.')}: `
}

/** The expectation that the schema words itself; a group of keys has no wording of its own. */
function expected(issue: z.core.$ZodIssue): string {
  return issue.code === 'invalid_type' && issue.expected === 'object' && /^Invalid input/.test(issue.message)
    ? 'keys with values'
    : issue.message
}

/** The value found may be an entire file that is not a dsc.yaml. */
function shorten(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 300)}…`
}
