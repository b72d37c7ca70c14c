// The pages of docs/benchmarks: people write the prose, benchmarks the sections between two marks.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const SECTION = /<!-- measured by (\S+): (.+?) -->\n([\s\S]*?)<!-- end -->/g

/** The sections of a page that the benchmark `name` writes: title and text. */
export function readSections(page, name) {
  return new Map(
    [...page.matchAll(SECTION)].filter(([, by]) => by === name).map(([, , title, text]) => [title, text]),
  )
}

/** Renews the sections that were measured, and leaves everything else as it is. */
export function writePage(path, { name, sections, pictures, how }) {
  const page = readFileSync(path, 'utf8')
  const known = readSections(page, name)
  for (const title of sections.keys())
    if (!known.has(title)) throw new Error(`${path} has no section "<!-- measured by ${name}: ${title} -->"`)
  const text = page.replace(SECTION, (whole, by, title) =>
    by === name && sections.has(title)
      ? `<!-- measured by ${by}: ${title} -->\n${how}\n\n${sections.get(title)}\n<!-- end -->`
      : whole,
  )
  writeFileSync(path, text)
  for (const [file, svg] of pictures) writeFileSync(join(dirname(path), file), svg)
}

/** How what was measured differs in shape from the `published` sections: one line a difference. */
export function compareShapes(published, { sections, leftOut }) {
  const missing = new Set(leftOut.map(([title]) => title))
  const problems = []
  for (const [title, text] of sections) {
    if (!published.has(title)) problems.push(`section "${title}" is not on the page`)
    else if (!missing.has(title))
      problems.push(...compareTables(title, shapesOf(published.get(title)), shapesOf(text)))
  }
  for (const title of published.keys())
    if (!sections.has(title) && !missing.has(title)) problems.push(`section "${title}" was not measured`)
  return problems
}

function compareTables(title, published, measured) {
  return [
    ...[...measured.difference(published)].map(
      (shape) => `"${title}" has a table that its page has not: ${shape}`,
    ),
    ...[...published.difference(measured)].map((shape) => `"${title}" lacks a table of its page: ${shape}`),
  ]
}

/** The headers of all tables in a text; numbers in them are sizes of a run. */
export function shapesOf(text) {
  const lines = text.split('\n')
  const heads = lines.filter((line, at) => line.startsWith('|') && /^\|[\s:|-]+\|$/.test(lines[at + 1] ?? ''))
  return new Set(heads.map((head) => head.replaceAll(/\d[\d,.]*/g, 'N').replaceAll(/\s+/g, ' ')))
}
