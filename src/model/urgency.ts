/**
 * How soon bytes of an arriving copy are needed: somebody waits for them now (`wanted`), a reader will use them
 * (`ordered`), or they only belong to what is staged (`listed`).
 */
export type Urgency = (typeof URGENCIES)[number]

/** From the least to the most urgent. */
const URGENCIES = ['listed', 'ordered', 'wanted'] as const

/** Whether `one` comes before `other`. */
export function isMoreUrgent(one: Urgency, other: Urgency): boolean {
  return URGENCIES.indexOf(one) > URGENCIES.indexOf(other)
}

/** Reads an urgency; undefined for anything else. */
export function parseUrgency(text: unknown): Urgency | undefined {
  return URGENCIES.find((urgency) => urgency === text)
}
