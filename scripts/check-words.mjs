// `npm run check`: finds phrases that a native reader stumbles over, in the documents and in what the program prints, and
// holds the documents to their budget. A line with `<!-- style: ok -->` or `// style: ok` above it is let through.
//   node scripts/check-words.mjs [--count]   --count prints the words of each page
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
/** Words of README and docs/, without output of commands, programs and comments. */
const MOST_WORDS = 20_000
const README_WORDS = 500

/** What is said, and what to say instead. */
const EVERYWHERE = [
  [/\b(whoever|whosever|whose that is|who has none)\b/i, 'name the actor'],
  [/\b(anew|thereby|whereof|so many fewer)\b/i, 'again, more, fewer'],
  [/\bfor (as|so) long as (it|they) lives?\b/i, 'until it exits'],
  [/\bnobody (stages|waits|uses|that|is at)\b/i, 'name what is so: idle, interrupted, no terminal'],
  [/\bput into the record\b/i, 'recorded'],
  [/\bcan be had\b/i, 'is available'],
  [/\bnot to be (written|used|read)\b/i, 'read-only, unused'],
  [/\b(trying|tried) again\b/i, 'retrying, retried'],
  [/\b(it|they|files?) (comes?|lies?) (here|there)\b/i, 'is here, arrives'],
  [/\bwhile (it|they) comes?\b/i, 'during the download'],
  [/\bas (it|they) comes?\b/i, 'during the download'],
  [/\b(tells?|says?) (of|who)\b/i, 'shows, prints, names'],
  [/\b1 \w+s? were\b/i, '1 … was'],
  [/\b([a-z]{2,}) \1\b(?!\.\w)|\b(\w+, or) \2\b/i, 'once'],
]
const PROSE = [
  [/^\s*(Who|Whoever|Whatever|Nobody)\b(?![^.]*\?)/, 'name the actor first'],
  [/\bin all\b[.,;]/i, 'total, or leave it out'],
  [/;[^;.\n]*;/, 'one semicolon a sentence'],
  [/\([^)]{110,}\)/, 'a sentence instead of a long parenthesis'],
  [/[^.!?\n|]{260,}[.!?]/, 'two sentences'],
]

const problems = []
const counts = []
for (const page of ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT }).sort()]) {
  const text = readFileSync(join(ROOT, page), 'utf8').replaceAll('\r', '')
  counts.push([page, countWords(text)])
  for (const paragraph of readParagraphs(text)) {
    report(page, paragraph, [...EVERYWHERE, ...PROSE])
  }
}
const printed = globSync('src/{cli,failure,config,tui,agent/page/files}/**/*.{ts,tsx,js}', { cwd: ROOT })
for (const path of printed.filter((path) => !path.includes('.test.'))) {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n')
  for (const [at, line] of lines.entries()) {
    if (/^\s*(\*|\/\/|\/\*\*)/.test(line) || lines[at - 1]?.includes('style: ok')) continue
    for (const [literal] of line.matchAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`/g))
      report(`${path}:${at + 1}`, literal, EVERYWHERE)
  }
}

const total = counts.reduce((sum, [, words]) => sum + words, 0)
if (process.argv.includes('--count')) {
  for (const [page, words] of counts) process.stdout.write(`${String(words).padStart(6)} ${page}\n`)
  process.stdout.write(`${String(total).padStart(6)} words\n`)
}
if (total > MOST_WORDS)
  problems.push(`docs: ${total} words, at most ${MOST_WORDS}: node scripts/check-words.mjs --count`)
if (counts[0][1] > README_WORDS) problems.push(`README.md: ${counts[0][1]} words, at most ${README_WORDS}`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length > 0 ? 1 : 0

function report(place, text, rules) {
  for (const [pattern, advice] of rules) {
    const found = pattern.exec(text)
    if (found) problems.push(`${place}: "${found[0].trim().slice(0, 60)}": ${advice}`)
  }
}

/** The paragraphs, list items and cells of a page, each as one line, without code. */
function readParagraphs(text) {
  return text
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/<!-- style: ok -->\n.*/g, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/`[^`\n]*`/g, '`code`')
    .split(/\n\s*\n|\n(?=\s*[-|>]|\s*\d+\. )/)
    .flatMap((paragraph) =>
      paragraph.startsWith('|') ? paragraph.split('|') : [paragraph.replaceAll('\n', ' ')],
    )
}

/** Prose, tables and commands: no comments, no output, no programs. */
function countWords(text) {
  return text
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/^```(\w*)\n([\s\S]*?)^```$/gm, (_, language, block) => {
      if (language === 'python' || language === 'ts') return ''
      if (language !== 'console') return block
      return block
        .split('\n')
        .filter((line) => line.startsWith('$'))
        .join('\n')
    })
    .split(/\s+/)
    .filter((word) => /[A-Za-z0-9]/.test(word)).length
}
