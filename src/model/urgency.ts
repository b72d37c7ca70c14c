/**
 * How soon bytes of a copy are needed during its download: a reader waits for them now (`wanted`), will use them
 * (`ordered`), or they are only part of the dataset (`listed`).
 */
export type Urgency = (typeof URGENCIES)[number]

/** From least to most urgent. */
const URGENCIES = ['listed', 'ordered', 'wanted'] as const

/** Whether `one` is more urgent than `other`. */
export function isMoreUrgent(one: Urgency, other: Urgency): boolean {
  return URGENCIES.indexOf(one) > URGENCIES.indexOf(other)
}

/** Reads an urgency; undefined for anything else. */
export function parseUrgency(text: unknown): Urgency | undefined {
  return URGENCIES.find((urgency) => urgency === text)
}
