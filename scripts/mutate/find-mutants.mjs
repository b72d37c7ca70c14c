// What can be changed in a TypeScript file so that a test should notice: comparisons, conditions, signs, small numbers,
// statements left out, and the same in SQL. Types, imports and the wording of failures are left alone.
import { parse } from '@babel/parser'

const OPERATORS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
  '+=': '-=',
  '-=': '+=',
}
const SQL = /\b(SELECT|UPDATE|DELETE|INSERT|WHERE|AND)\b/
const SQL_WORDS = [
  [/ = (?!excluded)/g, ' <> '],
  [/ <> /g, ' = '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/\bAND\b/g, 'OR'],
  [/\bOR\b(?! (REPLACE|IGNORE))/g, 'AND'],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/\bIS NULL\b/g, 'IS NOT NULL'],
  [/\bNOT IN\b/g, 'IN'],
  [/\bNOT EXISTS\b/g, 'EXISTS'],
  [/\bDESC\b/g, 'ASC'],
  [/\bmin\(/gi, 'max('],
  [/\bmax\(/gi, 'min('],
]
/** Types hold nothing that runs; of these three the expression inside does. */
const RUNS_INSIDE = ['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']

/**
 * Every mutant of a file, in the order of its text.
 * @returns {{ start: number, end: number, text: string, line: number, change: string }[]} `text` takes the place of
 *   what is between `start` and `end`
 */
export function findMutants(source) {
  const { program } = parse(source, { sourceType: 'module', plugins: ['typescript', 'estree'] })
  const mutants = []
  const add = (start, end, text) => {
    const line = source.slice(0, start).split('\n').length
    const short = (words) => words.replace(/\s+/g, ' ').trim().slice(0, 70)
    const change = `${short(source.slice(start, end))} → ${short(text) || '(left out)'}`
    mutants.push({ start, end, text, line, change })
  }
  visit(program, [], (node, parents) => mutate(node, parents, { source, add }))
  return mutants.sort((a, b) => a.start - b.start)
}

function mutate(node, parents, { source, add }) {
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
    case 'AssignmentExpression': {
      const { operator } = node
      if (!(operator in OPERATORS) || isJoiningText(node)) return
      const at = node.left.end + source.slice(node.left.end, node.right.start).indexOf(operator)
      add(at, at + operator.length, OPERATORS[operator])
      return
    }
    case 'UnaryExpression':
      if (node.operator === '!') add(node.start, node.start + 1, '')
      return
    case 'IfStatement':
    case 'ConditionalExpression':
      if (isMutatedItself(node.test)) return
      add(node.test.start, node.test.end, `!(${source.slice(node.test.start, node.test.end)})`)
      return
    case 'ExpressionStatement':
      if (/^(Call|Assignment|Update|Await)Expression$/.test(node.expression.type))
        add(node.start, node.end, ';')
      return
    case 'CallExpression': {
      const callee = source.slice(node.callee.start, node.callee.end)
      if (callee === 'Math.min' || callee === 'Math.max')
        add(node.callee.start, node.callee.end, callee === 'Math.min' ? 'Math.max' : 'Math.min')
      if (node.callee.property?.name === 'filter' && node.arguments.length === 1)
        add(node.arguments[0].start, node.arguments[0].end, '() => true')
      return
    }
    case 'Literal':
      return mutateLiteral(node, parents, { source, add })
    case 'TemplateElement':
      if (SQL.test(node.value.raw)) mutateSql(node.start, node.value.raw, add)
  }
}

function mutateLiteral(node, parents, { source, add }) {
  if (typeof node.value === 'boolean') return add(node.start, node.end, String(!node.value))
  const isTunable = parents.at(-1)?.type === 'VariableDeclarator' && parents.length <= 4
  if (typeof node.value === 'number' && node.value <= 2 && !isTunable)
    return add(node.start, node.end, String(node.value + 1))
  if (typeof node.value === 'string' && SQL.test(node.value))
    mutateSql(node.start, source.slice(node.start, node.end), add)
}

function mutateSql(start, text, add) {
  for (const [word, other] of SQL_WORDS)
    for (const { 0: found, index } of text.matchAll(word))
      add(start + index, start + index + found.length, other)
}

/** Whether mutating the condition by itself turns it round. */
function isMutatedItself({ type, operator }) {
  return operator === '!' || (type === 'BinaryExpression' && /^[!=]==$/.test(operator))
}

/** Whether a `+` joins texts, as far as one can see. */
function isJoiningText({ operator, left, right }) {
  const isText = (node) => node.type === 'TemplateLiteral' || typeof node.value === 'string'
  return operator === '+' && (isText(left) || isText(right))
}

function visit(node, parents, act) {
  if (node.type === 'ImportDeclaration' || node.type === 'ThrowStatement') return
  if (node.type === 'NewExpression' && /Error|Failure/.test(node.callee.name ?? '')) return
  if (node.type.startsWith('TS') && !RUNS_INSIDE.includes(node.type)) return
  act(node, parents)
  const inside = [...parents, node]
  for (const [name, value] of Object.entries(node)) {
    if (/Comments$|^typeAnnotation$|^typeParameters$|^typeArguments$|^returnType$/.test(name)) continue
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child?.type === 'string') visit(child, inside, act)
  }
}
