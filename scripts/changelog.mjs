// The change log, from one file per change in changelog/unreleased/ (changelog/TEMPLATE.md says how to write one).
//   node scripts/changelog.mjs                  prints what the next release brings
//   node scripts/changelog.mjs --check          fails if a file cannot be read
//   node scripts/changelog.mjs --release 0.2.0  writes the section into CHANGELOG.md and moves the files to changelog/0.2.0/
// --root FOLDER: the checkout (default: this one).
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const KINDS = ['Breaking', 'Security', 'Added', 'Changed', 'Fixed', 'Removed']
const MOST_CHARACTERS = 100
const MOST_SENTENCES = 3

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    release: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})
const folder = join(values.root, 'changelog/unreleased')
const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
const changes = names.map((name) => ({ name, ...readChange(readFileSync(join(folder, name), 'utf8')) }))
const problems = changes.flatMap(({ name, problems }) => problems.map((problem) => `${name}: ${problem}`))

if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`changelog/unreleased/${problem}\n`)
  process.exitCode = 1
} else if (values.release !== undefined) release(values.release)
else if (!values.check) process.stdout.write(`${formatSection()}\n`)

/** The fields of a file, its body, and what is wrong with them. */
function readChange(text) {
  const [head, ...rest] = text.trim().split(/\n\n/)
  const body = rest.join('\n\n').trim()
  const fields = Object.fromEntries(
    [...head.matchAll(/^(\w+): (.*)$/gm)].map(([, name, value]) => [name, value.trim()]),
  )
  const { kind, area, line = '' } = fields
  const needsBody = kind === 'Breaking' || kind === 'Security'
  const problems = [
    [!KINDS.includes(kind), `kind: expected ${KINDS.join(', ')}, found "${kind ?? ''}"`],
    [!area, 'area: expected a command or a part, found nothing'],
    [
      line === '' || line.length > MOST_CHARACTERS,
      `line: expected 1 to ${MOST_CHARACTERS} characters, found ${line.length}`,
    ],
    [line.endsWith('.'), 'line: expected no period at its end'],
    [needsBody && body === '', `${kind}: expected who is affected and what to do, below an empty line`],
    [
      (body.match(/[.!?](\s|$)/g) ?? []).length > MOST_SENTENCES,
      `body: expected at most ${MOST_SENTENCES} sentences`,
    ],
  ]
  return {
    kind,
    area,
    line,
    links: fields.links,
    body,
    problems: problems.flatMap(([is, what]) => (is ? [what] : [])),
  }
}

function formatSection() {
  return KINDS.flatMap((kind) => {
    const ofKind = changes
      .filter((change) => change.kind === kind)
      .toSorted((a, b) => (a.area < b.area ? -1 : 1))
    return ofKind.length === 0 ? [] : [`**${kind}**\n${ofKind.map(formatChange).join('\n')}`]
  }).join('\n\n')
}

function formatChange({ area, line, links, body }) {
  const first = `- **${area}**: ${line}${links ? ` (${links})` : ''}`
  return body === '' ? first : `${first}\n  ${body.replaceAll('\n', '\n  ')}`
}

function release(version) {
  const path = join(values.root, 'CHANGELOG.md')
  const day = new Date().toISOString().slice(0, 10)
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replace(/^(# .*\n)/, `$1\n## ${version} (${day})\n\n${formatSection()}\n`))
  mkdirSync(join(values.root, 'changelog', version), { recursive: true })
  for (const name of names) renameSync(join(folder, name), join(values.root, 'changelog', version, name))
}
