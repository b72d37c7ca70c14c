import { STATE_CODES } from './manifest-entry.js'

/** Selections of objects: `kept` are all but those of other stripes, `begun` those with verified bytes. */
export type Selection = 'all' | 'missing' | 'present' | 'kept' | 'begun'

/** The condition of SQL that chooses them among `object`. */
export const WHERE: Readonly<Record<Selection, string>> = {
  all: 'true',
  missing: `state = ${STATE_CODES.missing}`,
  present: `state = ${STATE_CODES.present}`,
  kept: `state <> ${STATE_CODES.elsewhere}`,
  begun: `(state = ${STATE_CODES.present} OR part_bytes IS NOT NULL)`,
}
