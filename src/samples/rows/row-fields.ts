import type { FileMetaData, SchemaElement, SchemaTree } from 'hyparquet'
import { parquetSchema } from 'hyparquet'
import { DscError } from '../../failure/dsc-error.js'

/** How to convert a value of a column without nested columns to one of a row. */
export type ScalarKind =
  | { readonly is: 'boolean' | 'integer' | 'uint32' | 'int64' | 'uint64' | 'float32' | 'float64' | 'float16' }
  | { readonly is: 'string' | 'bytes' }
  | { readonly is: 'date' }
  | { readonly is: 'int96' }
  | { readonly is: 'decimal'; readonly scale: number }
  | { readonly is: 'time'; readonly unit: TimeUnit }
  | { readonly is: 'timestamp'; readonly unit: TimeUnit; readonly isUtc: boolean }

/** Units of time, in the order of their numbers in a row. */
export const TIME_UNITS = ['MILLIS', 'MICROS', 'NANOS'] as const
/** A unit of time. */
export type TimeUnit = (typeof TIME_UNITS)[number]

/** A column, or a nested field. */
export type RowField =
  | { readonly name: string; readonly kind: 'scalar'; readonly scalar: ScalarKind }
  | { readonly name: string; readonly kind: 'list'; readonly element: RowField }
  | { readonly name: string; readonly kind: 'struct'; readonly fields: readonly RowField[] }
  /** `entries` names the repeated group that contains keys and values. */
  | {
      readonly name: string
      readonly kind: 'map'
      readonly entries: string
      readonly key: RowField
      readonly value: RowField
    }

/** A deeper schema is a mistake, or an attack. */
const MAX_DEPTH = 100

/** Finds the columns of a file in its order or, with `columns`, in their order. Throws USAGE for a missing column. */
export function findFields(
  path: string,
  metadata: FileMetaData,
  columns: readonly string[] | undefined,
): readonly RowField[] {
  const { children } = parquetSchema(metadata)
  const chosen = columns
    ? columns.map((name) => children.find(({ element }) => element.name === name) ?? name)
    : children
  const missing = chosen.find((each) => typeof each === 'string')
  if (missing !== undefined)
    throw new DscError('USAGE', `${path} has no column ${missing}`, {
      hint: `columns: ${children.map(({ element }) => element.name).join(', ')}`,
    })
  return chosen.map((tree) => fieldOf(tree as SchemaTree, 0))
}

/**
 * Changes the metadata so that values are read as stored: drops the logical types of leaves, which the row encoder
 * handles, reads maps as lists of entries, so that keys need not be strings, and names fields by `storedName`.
 */
export function withoutMeanings(metadata: FileMetaData): FileMetaData {
  const schema = metadata.schema.map((element): SchemaElement => {
    const { converted_type, logical_type, ...plain } = element
    const isList = converted_type === 'LIST' || logical_type?.type === 'LIST'
    const named = { ...plain, name: storedName(plain.name) }
    return element.num_children && isList ? { ...named, converted_type: 'LIST' } : named
  })
  const row_groups = metadata.row_groups.map((group) => ({
    ...group,
    columns: group.columns.map((column) => ({
      ...column,
      ...(column.meta_data && {
        meta_data: { ...column.meta_data, path_in_schema: column.meta_data.path_in_schema.map(storedName) },
      }),
    })),
  }))
  return { ...metadata, schema, row_groups }
}

/**
 * Name of a field while it is read. hyparquet puts structs together as plain objects, in which `__proto__` sets the
 * prototype, and a field that is absent would be found as `constructor` and the like.
 */
export function storedName(name: string): string {
  return name in Object.prototype ? `\0${name}` : name
}

function fieldOf(tree: SchemaTree, depth: number): RowField {
  if (depth > MAX_DEPTH) throw new Error(`its schema is deeper than ${MAX_DEPTH}`)
  const { element } = tree
  const single = singleField(tree, depth)
  return element.repetition_type === 'REPEATED'
    ? { name: element.name, kind: 'list', element: single }
    : single
}

function singleField(tree: SchemaTree, depth: number): RowField {
  const { element, children } = tree
  const { name } = element
  if (children.length === 0) return { name, kind: 'scalar', scalar: scalarOf(element) }
  const [repeated] = children
  const isList = element.converted_type === 'LIST' || element.logical_type?.type === 'LIST'
  if (isList && children.length === 1 && repeated!.element.repetition_type === 'REPEATED') {
    if (repeated!.children.length === 1)
      return { name, kind: 'list', element: fieldOf(repeated!.children[0]!, depth + 2) }
    if (repeated!.children.length === 0)
      return { name, kind: 'list', element: singleField(repeated!, depth + 1) }
  }
  const isMap = element.converted_type?.startsWith('MAP') || element.logical_type?.type === 'MAP'
  if (isMap && children.length === 1 && repeated!.children.length === 2) {
    const [key, value] = repeated!.children.map((child) => fieldOf(child, depth + 2))
    return { name, kind: 'map', entries: repeated!.element.name, key: key!, value: value! }
  }
  return { name, kind: 'struct', fields: children.map((child) => fieldOf(child, depth + 1)) }
}

function scalarOf({
  type,
  converted_type: converted,
  logical_type: logical,
  scale,
}: SchemaElement): ScalarKind {
  if (type === 'BOOLEAN') return { is: 'boolean' }
  if (type === 'FLOAT') return { is: 'float32' }
  if (type === 'DOUBLE') return { is: 'float64' }
  if (type === 'INT96') return { is: 'int96' }
  if (logical?.type === 'DECIMAL') return { is: 'decimal', scale: logical.scale }
  if (converted === 'DECIMAL') return { is: 'decimal', scale: scale ?? 0 }
  if (type === 'BYTE_ARRAY' || type === 'FIXED_LEN_BYTE_ARRAY') {
    if (logical?.type === 'FLOAT16') return { is: 'float16' }
    const isText = logical?.type === 'STRING' || logical?.type === 'JSON' || converted === 'UTF8'
    return { is: isText || converted === 'JSON' ? 'string' : 'bytes' }
  }
  return timeOf(converted, logical) ?? integerOf(type!, converted, logical)
}

type Converted = SchemaElement['converted_type']
type Logical = SchemaElement['logical_type']

function timeOf(converted: Converted, logical: Logical): ScalarKind | undefined {
  if (logical?.type === 'DATE' || converted === 'DATE') return { is: 'date' }
  if (logical?.type === 'TIMESTAMP')
    return { is: 'timestamp', unit: logical.unit, isUtc: logical.isAdjustedToUTC }
  if (logical?.type === 'TIME') return { is: 'time', unit: logical.unit }
  if (converted === 'TIMESTAMP_MILLIS') return { is: 'timestamp', unit: 'MILLIS', isUtc: true }
  if (converted === 'TIMESTAMP_MICROS') return { is: 'timestamp', unit: 'MICROS', isUtc: true }
  if (converted === 'TIME_MILLIS') return { is: 'time', unit: 'MILLIS' }
  if (converted === 'TIME_MICROS') return { is: 'time', unit: 'MICROS' }
  return undefined
}

function integerOf(type: string, converted: Converted, logical: Logical): ScalarKind {
  const isSigned = logical?.type === 'INTEGER' ? logical.isSigned : !converted?.startsWith('UINT_')
  if (type === 'INT64') return { is: isSigned ? 'int64' : 'uint64' }
  return { is: isSigned ? 'integer' : 'uint32' }
}
