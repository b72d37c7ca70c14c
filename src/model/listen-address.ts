/** Where a server listens. */
export interface ListenAddress {
  /** Host name or IP address, without brackets. */
  readonly host: string
  /** TCP port, 0–65535; 0 lets the kernel choose. */
  readonly port: number
}

/** Reads `127.0.0.1:7070` or `[::1]:7070`. Throws a RangeError that says what was expected and found. */
export function parseListenAddress(raw: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]\s/]+)):([0-9]{1,5})$/.exec(raw)
  const port = Number(match?.[3])
  if (!match || port > 65_535) {
    throw new RangeError(`expected host:port such as 127.0.0.1:7070, found ${JSON.stringify(raw)}`)
  }
  return { host: (match[1] ?? match[2])!, port }
}

/** Writes an address the way `parseListenAddress` reads it. */
export function formatListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
