// Prints what the source looks like in figures: rooms and the edges between them, circles, long functions, many or
// boolean parameters, exports without a doc comment or without a user, names exported twice.
// A room is a folder directly in src/, and each folder directly in cache/ and feed/. Tests are not counted.
//   node scripts/figures.mjs [--limit 15] [--room cache]
import { readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { parseArgs } from 'node:util'
import glob from 'fast-glob'
import { isTest, readSource } from './source/read-source.mjs'

const { values } = parseArgs({
  options: { limit: { type: 'string', default: '15' }, room: { type: 'string', default: '' } },
})
const limit = Number(values.limit)
const SPLIT = ['cache', 'feed']
const roomOf = (path) => {
  const [first, second, third] = path.split('/')
  if (second === undefined) return '(src)'
  return SPLIT.includes(first) && third !== undefined ? `${first}/${second}` : first
}
const isShown = (path) => values.room === '' || path.startsWith(`${values.room}/`)

const all = readSource()
const product = [...all.values()].filter(({ path }) => !isTest(path))
const shown = product.filter(({ path }) => isShown(path))
const edgesOf = (name, counts = () => true) => {
  const edges = new Map()
  for (const { path, imports } of product.filter(counts)) {
    for (const { target } of imports) {
      if (target === undefined || isTest(target) || name(target) === name(path)) continue
      if (!edges.has(name(path))) edges.set(name(path), new Map())
      const to = edges.get(name(path))
      to.set(name(target), (to.get(name(target)) ?? 0) + 1)
    }
  }
  return edges
}

print(
  'rooms: files, lines',
  countBy(shown, roomOf).map(([room, files, lines]) => `${room}  ${files} files, ${lines} lines`),
  { isComplete: true },
)
print('python: files, lines', pythonRooms(), { isComplete: true })
const roomEdges = edgesOf(roomOf)
print(
  'edges between rooms (imports)',
  [...roomEdges].map(
    ([from, to]) => `${from} → ${[...to].map(([room, count]) => `${room} ${count}`).join(', ')}`,
  ),
  { isComplete: true, count: [...roomEdges.values()].reduce((sum, to) => sum + to.size, 0) },
)
const layers = edgesOf((path) => (path.includes('/') ? path.split('/')[0] : '(src)'))
layers.delete('(src)')
print(
  'layers used (folder → folders it imports)',
  [...layers].map(([from, to]) => `${from} → ${[...to.keys()].sort().join(', ')}`),
  { isComplete: true, count: [...layers.values()].reduce((sum, to) => sum + to.size, 0) },
)
print(
  'circles of rooms',
  circles(edgesOf(roomOf, ({ path }) => path.includes('/'))).map((circle) => circle.join(' ⇄ ')),
)
print(
  'circles of files',
  circles(edgesOf((path) => path)).map((circle) => circle.join(' ⇄ ')),
)
print(
  'folders with more than 25 product files',
  countBy(shown, dirname)
    .filter(([, files]) => files > 25)
    .map(([folder, files]) => `${folder}  ${files}`),
)
print(
  'files over 200 lines',
  shown
    .filter(({ lines }) => lines > 200)
    .sort((a, b) => b.lines - a.lines)
    .map(({ path, lines }) => `${lines}  ${path}`),
)

const functions = shown.flatMap(({ path, functions }) => functions.map((one) => ({ path, ...one })))
const long = functions.toSorted((a, b) => b.lines - a.lines)
const lengthRow = ({ path, line, name, lines }) => `${lines}  ${name}  ${path}:${line}`
print('functions over 100 lines', long.filter(({ lines }) => lines > 100).map(lengthRow))
print('functions over 50 lines', long.filter(({ lines }) => lines > 50).map(lengthRow))
print(
  'functions with more than 3 parameters',
  functions
    .filter(({ parameterCount }) => parameterCount > 3)
    .sort((a, b) => b.parameterCount - a.parameterCount)
    .map(({ path, line, name, parameterCount }) => `${parameterCount}  ${name}  ${path}:${line}`),
)
print(
  'boolean parameters',
  functions.flatMap(({ path, line, name, booleanParameters }) =>
    booleanParameters.map((parameter) => `${name}(${parameter})  ${path}:${line}`),
  ),
)

const users = usersOfExports()
const exported = shown.flatMap(({ path, exports }) =>
  exports.map((one) => ({
    path,
    ...one,
    users: users(path, one.name),
    isUsedAtHome: (all.get(path).uses.get(one.name) ?? 0) > 1,
  })),
)
const exportRow = ({ path, line, name }) => `${name}  ${path}:${line}`
print(
  'exports without doc comment: values',
  exported.filter((one) => !one.hasDoc && !one.isType).map(exportRow),
)
print(
  'exports without doc comment: types',
  exported.filter((one) => !one.hasDoc && one.isType).map(exportRow),
)
const unused = exported.filter((one) => !one.users.has('product'))
const tested = unused.filter((one) => !one.isType && one.users.has('test') && one.users.size === 1)
print('values that only tests use', tested.filter((one) => !one.isUsedAtHome).map(exportRow))
print(
  'values that their own file uses, exported for tests',
  tested.filter((one) => one.isUsedAtHome).map(exportRow),
)
print(
  'values that only scripts import',
  unused.filter((one) => !one.isType && one.users.has('scripts')).map(exportRow),
)
print(
  'values that nobody imports',
  unused.filter((one) => !one.isType && one.users.size === 0).map(exportRow),
)
print('types that nobody imports', unused.filter((one) => one.isType && one.users.size === 0).map(exportRow))
const byName = groupBy(exported, ({ name }) => name)
print(
  'names exported twice',
  [...byName]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => `${name}  ${same.map(({ path }) => path).join(', ')}`),
)
const byFile = groupBy(shown, ({ path }) => basename(path))
print(
  'file names used twice',
  [...byFile]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => `${name}  ${same.map(({ path }) => dirname(path)).join(', ')}`),
)

function print(title, rows, { isComplete = false, count = rows.length } = {}) {
  const cut = isComplete ? rows : rows.slice(0, limit)
  const more = rows.length > cut.length ? [`… ${rows.length - cut.length} more`] : []
  process.stdout.write(`\n${title}: ${count}\n${[...cut, ...more].map((row) => `  ${row}\n`).join('')}`)
}

function countBy(files, name) {
  return [...groupBy(files, ({ path }) => name(path))]
    .map(([key, same]) => [key, same.length, same.reduce((sum, { lines }) => sum + lines, 0)])
    .concat(
      name === roomOf ? [['(all)', files.length, files.reduce((sum, { lines }) => sum + lines, 0)]] : [],
    )
}

/** Map.groupBy, which Node 20 has not. */
function groupBy(items, keyOf) {
  const groups = new Map()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

function pythonRooms() {
  const files = glob
    .sync('src/python/{dsc,dsc-data}/**/*.py')
    .sort()
    .map((path) => ({
      path: path.replace(/^src\/python\//, ''),
      lines: readFileSync(path, 'utf8').split('\n').length - 1,
    }))
  return countBy(files, dirname).map(([folder, count, lines]) => `${folder}  ${count} files, ${lines} lines`)
}

/** Groups of keys of `edges` that reach each other. */
function circles(edges) {
  const reach = (from) => {
    const seen = new Set()
    for (const open = [from]; open.length > 0; ) {
      for (const next of edges.get(open.pop())?.keys() ?? []) {
        if (seen.has(next)) continue
        seen.add(next)
        open.push(next)
      }
    }
    return seen
  }
  const reached = new Map([...edges.keys()].map((key) => [key, reach(key)]))
  const groups = []
  for (const [key, seen] of reached) {
    if (!seen.has(key) || groups.some((group) => group.includes(key))) continue
    groups.push([...seen].filter((other) => reached.get(other)?.has(key)).sort())
  }
  return groups
}

/** Who imports an export: product, test or scripts; what package.json and bin/ open counts as used. */
function usersOfExports() {
  const byExport = new Map()
  const add = (path, name, user) => {
    const key = `${path} ${name}`
    byExport.set(key, (byExport.get(key) ?? new Set()).add(user))
  }
  for (const { path, imports } of all.values()) {
    for (const { target, names } of imports) {
      if (target !== undefined) for (const name of names) add(target, name, isTest(path) ? 'test' : 'product')
    }
  }
  const entries = JSON.stringify(JSON.parse(readFileSync('package.json', 'utf8')).exports)
  for (const [, path] of entries.matchAll(/dist\/([\w/-]+)\.js/g)) add(`${path}.ts`, '*', 'product')
  for (const file of [
    ...glob.sync('{scripts,bin}/**/*.{mjs,js,py,sh}'),
    ...glob.sync('src/python/**/*.py'),
  ]) {
    const text = readFileSync(file, 'utf8')
    for (const [, path] of text.matchAll(/dist\/([\w/-]+)\.c?js/g)) {
      add(`${path}.ts`, '*', file.startsWith('bin') ? 'product' : 'scripts')
    }
  }
  return (path, name) => {
    const whole = byExport.get(`${path} *`) ?? []
    const wholeUsers = [...whole]
    return new Set([...(byExport.get(`${path} ${name}`) ?? []), ...wholeUsers])
  }
}
