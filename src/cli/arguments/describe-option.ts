import type { Option } from 'commander'

/** What help says of an option: what it is, its choices, and its default as one would write it. */
export function describeOption(option: Option): string {
  const { description, argChoices, defaultValue, defaultValueDescription } = option
  const facts: string[] = []
  if (argChoices) facts.push(`choices: ${argChoices.join(', ')}`)
  // A switch is off unless it is given: nothing to say.
  if (defaultValue !== undefined && typeof defaultValue !== 'boolean') {
    facts.push(`default: ${defaultValueDescription ?? String(defaultValue)}`)
  } else if (defaultValueDescription !== undefined) facts.push(`default: ${defaultValueDescription}`)
  return facts.length === 0 ? description : `${description} (${facts.join(', ')})`
}
