import { type Document, isMap, isNode, isScalar, type LineCounter } from 'yaml'
import type { z } from 'zod'
import { findClosest } from '../model/find-closest.js'

type Path = readonly PropertyKey[]

/** The line and column of the value at `path` in the YAML text; for a missing value, those of its nearest parent. */
export function findLine(
  document: Document,
  lines: LineCounter,
  path: Path,
): { line: number; column: number } {
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
export function explainMistakes(
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
