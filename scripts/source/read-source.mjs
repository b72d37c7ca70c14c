// What the TypeScript files of src/ import, export and declare, read with a parser: for scripts/figures.mjs and for the
// layer check. Paths are relative to src/ and use '/'.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import { parse } from '@babel/parser'
import glob from 'fast-glob'

const TEST = /\.(test|contract)\.|\.test\.(worker|fixture)\.|^(testing|e2e)\//

/** Whether users never run `path`: tests, contract suites and what only they use. */
export const isTest = (path) => TEST.test(path)

/**
 * Reads every file of `root` (default: src).
 * @returns {Map<string, { path, lines, text, imports, exports, functions, uses, comments }>} by path; `uses`
 *   counts each identifier
 */
export function readSource(root = 'src') {
  const files = new Map()
  for (const path of glob.sync('**/*.{ts,tsx}', { cwd: root }).sort()) {
    if (!path.endsWith('.d.ts'))
      files.set(path, readModule(path, readFileSync(join(root, path), 'utf8'), root))
  }
  return files
}

/** Reads one module; `imports` name the files they lead to, packages keep their specifier. */
function readModule(path, text, root) {
  const plugins = ['typescript', 'estree', ...(path.endsWith('x') ? ['jsx'] : [])]
  const { program, comments } = parse(text, { sourceType: 'module', sourceFilename: path, plugins })
  const lineOf = lineFinder(text)
  const found = { imports: readStaticImports(program), functions: [], uses: new Map() }
  walk(program, [], (node, parents) => {
    const reached = readInnerImport(node)
    if (reached !== undefined) found.imports.push({ specifier: reached, names: ['*'], isType: false })
    if (node.type === 'Identifier') found.uses.set(node.name, (found.uses.get(node.name) ?? 0) + 1)
    if (isFunction(node)) found.functions.push(describeFunction(node, parents, lineOf))
  })
  return {
    path,
    text,
    lines: text.split('\n').length - 1,
    comments,
    imports: found.imports.map((one) => ({ ...one, target: resolve(path, one.specifier, root) })),
    exports: readExports(program, comments, text, lineOf),
    functions: found.functions,
    uses: found.uses,
  }
}

function readStaticImports({ body }) {
  return body
    .filter(({ type, source }) => source && /^(Import|ExportNamed|ExportAll)Declaration$/.test(type))
    .map(({ source, specifiers = [], importKind, exportKind }) => ({
      specifier: source.value,
      names: specifiers.map(({ imported, local }) => (imported ?? local)?.name ?? '*'),
      isType:
        importKind === 'type' ||
        exportKind === 'type' ||
        (specifiers.length > 0 && specifiers.every((one) => (one.importKind ?? one.exportKind) === 'type')),
    }))
}

/** `import('./x.js')`, as a value or as a type, and `new URL('./x.js', import.meta.url)`, which starts a thread. */
function readInnerImport(node) {
  if (node.type === 'ImportExpression' || node.type === 'TSImportType')
    return node.source?.value ?? node.argument?.literal?.value ?? node.argument?.value
  if (node.type !== 'NewExpression' || node.callee.name !== 'URL') return undefined
  const [first] = node.arguments
  return typeof first?.value === 'string' && /^\.\.?\/.*\.c?js$/.test(first.value) ? first.value : undefined
}

function resolve(path, specifier, root) {
  if (!specifier.startsWith('.')) return undefined
  const bare = slashed(normalize(join(dirname(path), specifier))).replace(/\.c?js$/, '')
  return [`${bare}.ts`, `${bare}.tsx`].find((candidate) => existsSync(join(root, candidate)))
}

function readExports(program, comments, text, lineOf) {
  const described = []
  for (const node of program.body) {
    if (node.type !== 'ExportNamedDeclaration' || node.source) continue
    const hasDoc = comments.some(
      (comment) =>
        comment.type === 'CommentBlock' &&
        comment.value.startsWith('*') &&
        comment.end <= node.start &&
        text.slice(comment.end, node.start).trim() === '',
    )
    const isType = /^TS(Interface|TypeAlias)/.test(node.declaration?.type ?? '') || node.exportKind === 'type'
    for (const name of namesOf(node)) described.push({ name, isType, hasDoc, line: lineOf(node.start) })
  }
  return described
}

function namesOf({ declaration, specifiers }) {
  if (!declaration) return specifiers.map(({ exported }) => exported.name)
  if (declaration.id) return [declaration.id.name]
  return declaration.declarations.flatMap(({ id }) =>
    id.type === 'ObjectPattern' ? id.properties.map(({ value }) => value.name) : [id.name],
  )
}

const isFunction = (node) =>
  ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(node.type)

function describeFunction(node, parents, lineOf) {
  const parameters = node.params
    .map((parameter) => parameter.parameter ?? parameter)
    .filter((parameter) => parameter.name !== 'this')
  return {
    name: nameOfFunction(node, parents),
    line: lineOf(node.start),
    lines: lineOf(node.end) - lineOf(node.start) + 1,
    parameterCount: parameters.length,
    booleanParameters: parameters.filter(isBoolean).map((parameter) => (parameter.left ?? parameter).name),
  }
}

function isBoolean({ left, right, typeAnnotation }) {
  if (typeof right?.value === 'boolean') return true
  const type = (left?.typeAnnotation ?? typeAnnotation)?.typeAnnotation
  const members = type?.type === 'TSUnionType' ? type.types : [type]
  return members.some((member) => member?.type === 'TSBooleanKeyword')
}

/** A function's own name, that of what it is assigned to, or the name of the function around it. */
function nameOfFunction(node, parents) {
  if (node.id) return node.id.name
  const parent = parents.at(-1)
  if (parent?.type === 'VariableDeclarator') return parent.id.name ?? '(pattern)'
  if (parent?.key) {
    const owner = parents.findLast((one) => one.type === 'ClassDeclaration')
    const key = `${parent.key.type === 'PrivateIdentifier' ? '#' : ''}${parent.key.name ?? parent.key.value}`
    return parent.type === 'MethodDefinition' && owner ? `${owner.id.name}.${key}` : key
  }
  const around = parents.findLastIndex(isFunction)
  return around < 0 ? '(anonymous)' : `(in ${nameOfFunction(parents[around], parents.slice(0, around))})`
}

function walk(node, parents, visit) {
  visit(node, parents)
  const inside = [...parents, node]
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child?.type === 'string' && !child.type.startsWith('Comment')) walk(child, inside, visit)
  }
}

function lineFinder(text) {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    let low = 0
    for (let high = starts.length; high - low > 1; ) {
      const middle = (low + high) >> 1
      if (starts[middle] <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}

const slashed = (path) => path.split(sep).join('/')
