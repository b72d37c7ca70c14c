// Keeps the direction of imports: the table of scripts/source/layers.mjs holds exactly the edges that are used, and pure
// files touch neither clock, randomness, process nor IO. Tests, src/testing, src/e2e and what lies in src/ itself
// (compose.ts and what is started) may import what they like.
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { EDGES, NOT_PURE, PURE, PURE_PACKAGES, SPLIT } from './source/layers.mjs'
import { isTest, readSource } from './source/read-source.mjs'

const ADAPTERS = /^(records\/(sqlite|postgres)|sources\/[^/]+)\//
const IMPURE =
  /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.|\bperformance\.now\(|\bawait\b|\bsetTimeout\(|\bglobalThis\.crypto/
const TABLE = 'scripts/source/layers.mjs'

const allowed = new Map(
  EDGES.flatMap(({ to, from }) => from.split(' ').map((room) => [`${room} → ${to}`, false])),
)
const isPure = (path) => PURE.some((rule) => rule.test(path)) && !NOT_PURE.some((rule) => rule.test(path))
const topOf = (path) => (path.includes('/') ? path.split('/')[0] : '(src)')
const innerOf = (path) =>
  path
    .split('/')
    .slice(0, path.split('/').length > 2 ? 2 : 1)
    .join('/')

const problems = []
const files = [...readSource().values()].filter(({ path }) => !isTest(path) && path.includes('/'))
for (const { path, imports, text, comments } of files) {
  for (const { specifier, target } of imports) {
    if (target !== undefined && !isTest(target)) checkEdge(path, target)
    if (isPure(path)) checkPureImport(path, specifier, target)
  }
  if (isPure(path)) {
    const used = withoutComments(text, comments).match(IMPURE)
    if (used) problems.push(`src/${path}: decides only (by its name), but uses ${used[0]}`)
  }
}
for (const [edge, isUsed] of allowed) {
  if (!isUsed) problems.push(`${TABLE}: ${edge}: nobody uses it any more, take it out`)
}
for (const room of new Set(EDGES.flatMap(({ to, from }) => [to, ...from.split(' ')]))) {
  if (room !== '(src)' && !existsSync(`src/${room}`)) problems.push(`${TABLE}: there is no src/${room}/`)
}
for (const problem of problems) process.stderr.write(`${problem}\n`)
if (problems.length > 0)
  process.exitCode = 1 // not process.exit, which cuts off what a pipe has not taken yet
else process.stdout.write(`layers: ${allowed.size} edges, each used and allowed\n`)

function checkEdge(path, target) {
  const [from, to] =
    topOf(path) === topOf(target) && SPLIT.includes(topOf(path))
      ? [innerOf(path), innerOf(target)]
      : [topOf(path), topOf(target)]
  if (from !== to) {
    const edge = `${from} → ${to}`
    if (allowed.has(edge)) allowed.set(edge, true)
    else {
      problems.push(
        `src/${path}: imports ${target}, but ${edge} is not in ${TABLE}: add "${from}" to the row of "${to}" whose reason it has, or a row with its reason, or move what it needs to a room that both may use`,
      )
    }
  }
  if (ADAPTERS.test(target) && dirname(target) !== dirname(path)) {
    problems.push(`src/${path}: only compose.ts names the adapter ${target}; others use the port`)
  }
}

function checkPureImport(path, specifier, target) {
  const isFine =
    target === undefined ? PURE_PACKAGES.includes(specifier) : isPure(target) || topOf(target) === 'failure'
  if (!isFine) problems.push(`src/${path}: decides only (by its name), but imports ${target ?? specifier}`)
}

function withoutComments(text, comments) {
  let kept = ''
  let at = 0
  for (const { start, end } of comments) {
    kept += text.slice(at, start)
    at = end
  }
  return kept + text.slice(at)
}
