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

/**
 * Renews what a page publishes of what was measured. A run may have more sections and tables than its page: in each
 * section of the page, the first table of each shape that is there is renewed, or all text where there is no table.
 * Everything else stays as it is.
 */
export function writePage(path, { name, sections, pictures, how }) {
  const page = readFileSync(path, 'utf8')
  const text = page.replace(SECTION, (whole, by, title, published) =>
    by === name && sections.has(title)
      ? `<!-- measured by ${by}: ${title} -->\n${how}\n\n${chooseTables(sections.get(title), shapesOf(published))}\n<!-- end -->`
      : whole,
  )
  writeFileSync(path, text)
  for (const [file, svg] of pictures)
    if (text.includes(`](${file})`)) writeFileSync(join(dirname(path), file), svg)
}

function chooseTables(text, shapes) {
  if (shapes.size === 0) return text
  const wanted = new Set(shapes)
  const tables = text.match(/^\|.*(?:\n\|.*)*/gm) ?? []
  return tables.filter((table) => wanted.delete([...shapesOf(table)][0])).join('\n\n')
}

/** What the `published` sections have and the run lacks: one line for each. A page need not publish all of a run. */
export function compareShapes(published, { sections, leftOut }) {
  const missing = new Set(leftOut.map(([title]) => title))
  return [...published].flatMap(([title, text]) => {
    if (missing.has(title)) return []
    if (!sections.has(title)) return [`section "${title}" was not measured`]
    const lacking = shapesOf(text).difference(shapesOf(sections.get(title)))
    return [...lacking].map((shape) => `"${title}" lacks a table of its page: ${shape}`)
  })
}

/** The headers of all tables in a text; numbers in them are sizes of a run. */
export function shapesOf(text) {
  const lines = text.split('\n')
  const heads = lines.filter((line, at) => line.startsWith('|') && /^\|[\s:|-]+\|$/.test(lines[at + 1] ?? ''))
  return new Set(heads.map((head) => head.replaceAll(/\d[\d,.]*/g, 'N').replaceAll(/\s+/g, ' ')))
}
