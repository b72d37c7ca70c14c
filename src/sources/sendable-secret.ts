import { DscError } from '../failure/dsc-error.js'

/**
 * Returns a secret that a header can carry. Throws CONFIG_INVALID, which names the variable or file that holds it and
 * the character, and shows nothing else of it.
 */
export function requireSendable(
  secret: string,
  { named, hint }: { readonly named: string; readonly hint: string },
): string {
  const characters = [...secret]
  const at = characters.findIndex((character) => !/^[\x20-\x7e]$/.test(character))
  if (at === -1) return secret
  const code = characters[at]!.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
  throw new DscError(
    'CONFIG_INVALID',
    `${named} has U+${code} as character ${at + 1} of ${characters.length}, and only printable ASCII can be sent`,
    { hint },
  )
}
