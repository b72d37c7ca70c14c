import type { SqlValue } from '../database/sql-database.js'

/** A condition with its values; it applies unless one of them is undefined. */
type Condition = readonly [sql: string, values: readonly (SqlValue | undefined)[]]

/** The WHERE clause of those conditions whose values are given, with its parameters; empty without any. */
export function formatWhere(conditions: readonly Condition[]): {
  readonly where: string
  readonly parameters: readonly SqlValue[]
} {
  const given = conditions.filter((one): one is [string, readonly SqlValue[]] => !one[1].includes(undefined))
  return {
    where: given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : '',
    parameters: given.flatMap(([, values]) => values),
  }
}

/** The condition that a column has one of these values; it applies if there is a list. */
export function isOneOf(column: string, values: readonly string[] | undefined): Condition {
  const places = values?.map(() => '?').join(', ') || 'NULL'
  return [`${column} IN (${places})`, values ?? [undefined]]
}
