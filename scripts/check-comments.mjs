// Fails where comments of the product or of the Python client use the worst patterns of CONTRIBUTING, "Words":
// sentences whose subject is a relative clause, and words that a native reader would not write.
//   node scripts/check-comments.mjs
import { readFileSync } from 'node:fs'
import glob from 'fast-glob'

const PATTERNS = [
  { what: 'a subject that nobody names', pattern: /^\s*(?:What|Who|Whoever|Whatever|Nobody)\b(?![^.]*\?)/ },
  { what: 'whoever, whatever', pattern: /\b(?:whoever|whatever)\b/i },
  { what: 'is none', pattern: /(?<!there )\b(?:is|are) none\b/ },
  { what: 'a word that few write', pattern: /\b(?:anew|meanwhile|thereby|whereof|likewise|so long as)\b/i },
  { what: 'as it comes', pattern: /\bas (?:it|they) (?:comes?|came|lies?)\b|\bwhile (?:it|they) comes?\b/i },
  { what: 'is to be, can be had', pattern: /\bcan be had\b|\bis to be\b|\bhas to be\b|\bnot to be \w+ed\b/i },
  { what: 'tells of', pattern: /\b(?:tells?|says?) of\b/i },
]
const PRODUCT = ['src/**/*.{ts,tsx}', '!src/**/*.{test,contract}.*', '!src/{e2e,testing}/**']
const PYTHON = 'src/python/dsc/**/*.py'

/** The comments of a file, each with its line number; a run of line comments is one. */
function* commentsOf(path, text) {
  const comment = path.endsWith('.py')
    ? /"""([\s\S]*?)"""|(?:^|\s{2,})#\s(.*)$/gm
    : /\/\*\*([\s\S]*?)\*\/|(?:^|\s)\/\/\s(.*)$/gm
  for (const { 0: whole, 1: block, 2: line, index } of text.matchAll(comment)) {
    const words = (block ?? line).replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim()
    yield { words, line: text.slice(0, index + whole.search(/\S/)).split('\n').length }
  }
}

const found = []
for (const path of await glob([...PRODUCT, PYTHON], {})) {
  const text = readFileSync(path, 'utf8')
  for (const { words, line } of commentsOf(path, text))
    for (const { what, pattern } of PATTERNS)
      if (pattern.test(words)) found.push(`${path}:${line}: ${what}: ${words.slice(0, 400)}`)
}
for (const each of found.sort()) console.log(each)
if (found.length > 0) {
  console.log(`comments: ${found.length} to rewrite, see "Words" in CONTRIBUTING.md`)
  process.exitCode = 1
}
