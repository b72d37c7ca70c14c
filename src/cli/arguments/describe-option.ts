import type { Option } from 'commander'

/** An option's text in help: its description, its choices, and its default as one would type it. */
export function describeOption(option: Option): string {
  const { description, argChoices, defaultValue, defaultValueDescription } = option
  const facts: string[] = []
  if (argChoices) facts.push(`choices: ${argChoices.join(', ')}`)
  // A switch is off unless given, so its default needs no words.
  if (defaultValue !== undefined && typeof defaultValue !== 'boolean') {
    facts.push(`default: ${defaultValueDescription ?? String(defaultValue)}`)
  } else if (defaultValueDescription !== undefined) facts.push(`default: ${defaultValueDescription}`)
  return facts.length === 0 ? description : `${description} (${facts.join(', ')})`
}
