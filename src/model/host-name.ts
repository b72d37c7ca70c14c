/** A host name, and how its clients speak where it was given as a URL. */
export interface HostName {
  /** In lower case, without port, brackets and the dot that ends a full name. */
  readonly name: string
  readonly scheme?: 'http' | 'https'
}

/** Reads `gpu-07`, `data.example:8443` or `https://data.example`; any text gives some name. */
export function parseHostName(given: string): HostName {
  const [, scheme, rest = given] = /^(https?):\/\/([^/]*)\/?$/i.exec(given) ?? []
  const bracketed = /^\[([^\]]*)\]/.exec(rest)?.[1]
  const name = (bracketed ?? rest.replace(/:\d*$/, '')).toLowerCase().replace(/\.$/, '')
  return scheme === undefined ? { name } : { name, scheme: scheme.toLowerCase() as 'http' | 'https' }
}

/** Whether `parseHostName` finds a name that DNS or /etc/hosts could have. */
export function isHostName(given: string): boolean {
  return /^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/.test(parseHostName(given).name)
}
