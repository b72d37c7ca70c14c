import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ANSWER_LINES, ANSWERS, createAnswerSchema } from './answer-schemas.js'

/** A part of a JSON Schema, as far as the rules look at it. */
interface Part {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly unit?: string
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Part>>
  readonly additionalProperties?: Part | boolean
  readonly items?: Part
  readonly anyOf?: readonly Part[]
  readonly oneOf?: readonly Part[]
}

const DEFS = createAnswerSchema().$defs as Readonly<Record<string, Part>>

function resolve(part: Part): Part {
  return part.$ref === undefined ? part : resolve(DEFS[part.$ref.replace('#/$defs/', '')]!)
}

/** The schemas that one part stands for: itself, or each of its alternatives. */
function alternatives(part: Part): readonly Part[] {
  const found = resolve(part)
  if (Array.isArray(found.type)) return found.type.map((type: string) => ({ ...found, type }))
  const choices = [...(found.anyOf ?? []), ...(found.oneOf ?? [])]
  return choices.length === 0 ? [found] : choices.flatMap(alternatives)
}

interface Field {
  readonly path: string
  readonly name: string
  readonly kinds: readonly Part[]
}

/** Every field of every answer, once per place. Values of maps and lists go by the name of their container. */
function* walk(part: Part, path: string, name: string): Generator<Field> {
  const kinds = alternatives(part)
  if (name !== '') yield { path, name, kinds }
  for (const { properties = {}, items, additionalProperties } of kinds) {
    for (const [inner, child] of Object.entries(properties)) yield* walk(child, `${path}.${inner}`, inner)
    if (items) yield* walk(items, `${path}[]`, '')
    if (typeof additionalProperties === 'object') yield* walk(additionalProperties, `${path}{}`, '')
  }
}

const WORDS = Object.keys({ ...ANSWERS, ...ANSWER_LINES })
const FIELDS = WORDS.flatMap((words) => [...walk(DEFS[words]!, words, '')])

/** The fields that break a rule, each once. */
function find(breaks: (field: Field) => boolean): readonly string[] {
  return [...new Set(FIELDS.filter(breaks).map(({ path }) => path))]
}

const has =
  (unit: string) =>
  ({ kinds }: Field) =>
    kinds.some((kind) => kind.unit === unit || (kind.items && resolve(kind.items).unit === unit))

test('every answer is an object that begins with "dsc": 1, and never a list', () => {
  const wrong = WORDS.filter((words) =>
    alternatives(DEFS[words]!).some(
      ({ type, properties = {} }) =>
        type !== 'object' || Object.keys(properties)[0] !== 'dsc' || properties.dsc?.const !== 1,
    ),
  )
  assert.deepEqual(wrong, [])
})

/** Kinds of fields by unit, and how their names show it. */
const UNITS = [
  { unit: 'bytes', says: /Bytes$/ },
  { unit: 'bytes per second', says: /[bB]ytesPerSecond$/ },
  { unit: 'seconds', says: /Seconds$/ },
  { unit: 'milliseconds', says: /(?<!Per)Ms$/ },
  { unit: 'microseconds', says: /Microseconds$/ },
  { unit: 'time', says: /At$|^(at|since|until)$/ },
]

for (const { unit, says } of UNITS) {
  test(`the name of a field in ${unit} says so`, () => {
    assert.ok(FIELDS.some(has(unit)), 'there are some')
    assert.deepEqual(
      find((field) => has(unit)(field) && !says.test(field.name)),
      [],
    )
  })
}

/** Names that end like a unit but are not numbers: the place of a peak, not its time. */
const NO_UNIT = ['peakAt']

test('a number whose name says a unit is of that kind', () => {
  const isNumber = ({ kinds }: Field) => kinds.some(({ type }) => type === 'number' || type === 'integer')
  for (const { unit, says } of UNITS) {
    const wrong = find(
      (field) =>
        (isNumber(field) || unit === 'time') &&
        says.test(field.name) &&
        !has(unit)(field) &&
        !NO_UNIT.includes(field.name),
    )
    assert.deepEqual(wrong, [], unit)
  }
})

test('no name leaves open what it counts, or says a time without its unit', () => {
  const vague = /^(bytes|size|seconds|ms|time|duration|timeout|age|ttl|elapsed)$|(Time|Duration|Timeout|Age)$/
  assert.deepEqual(
    find(({ name }) => vague.test(name)),
    [],
  )
})

test('a dataset, a lease and its holder are the same everywhere', () => {
  const only = (name: string, of: (kind: Part) => boolean) =>
    find((field) => field.name === name && !field.kinds.every((kind) => kind.type === 'null' || of(kind)))
  for (const name of ['dataset', 'leaseId', 'copyId', 'node', 'task'])
    assert.deepEqual(
      only(name, ({ type }) => type === 'string'),
      [],
    )
  const holders = alternatives(DEFS.holder!)
  assert.deepEqual(
    only('holder', (kind) => holders.includes(kind)),
    [],
  )
  const leases = find(
    ({ name, kinds }) => name === 'lease' && !kinds.every((kind) => kind.properties?.leaseId),
  )
  assert.deepEqual(leases, [])
})

/** Keys of dsc.yaml and arguments of PyTorch, which take their names from there. */
const NAMED_ELSEWHERE = ['pathStyle', 'anonymous', 'requesterPays', 'header']

test('what is true or false is named as a claim', () => {
  const wrong = find(
    ({ name, kinds, path }) =>
      kinds.some(({ type }) => type === 'boolean') &&
      !/^(is|has)[A-Z]/.test(name) &&
      !NAMED_ELSEWHERE.includes(name) &&
      !path.includes('.ddp'),
  )
  assert.deepEqual(wrong, [])
})
