/** A host name, with the scheme of its clients if it was given as a URL. */
export interface HostName {
  /** In lower case, without port, brackets and the final dot of a full name. */
  readonly name: string
  readonly scheme?: 'http' | 'https'
}

/** Parses `gpu-07`, `data.example:8443` or `https://data.example`; any text gives a name. */
export function parseHostName(given: string): HostName {
  const [, scheme, rest = given] = /^(https?):\/\/([^/]*)\/?$/i.exec(given) ?? []
  const bracketed = /^\[([^\]]*)\]/.exec(rest)?.[1]
  const name = (bracketed ?? rest.replace(/:\d*$/, '')).toLowerCase().replace(/\.$/, '')
  return scheme === undefined ? { name } : { name, scheme: scheme.toLowerCase() as 'http' | 'https' }
}

/** Whether `parseHostName` finds a name that DNS or /etc/hosts could contain. */
export function isHostName(given: string): boolean {
  return /^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/.test(parseHostName(given).name)
}
