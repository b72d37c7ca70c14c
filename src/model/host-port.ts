/** A TCP address. */
export interface HostPort {
  /** Host name or IP address, without brackets. */
  readonly host: string
  /** TCP port, 0–65535; for a listener, 0 lets the kernel choose. */
  readonly port: number
}

/**
 * Parses `127.0.0.1:7070` or `[::1]:7070`, and a host alone if there is a `defaultPort`. Throws a RangeError with what
 * was expected and found.
 */
export function parseHostPort(raw: string, defaultPort?: number): HostPort {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]\s/]+))(?::([0-9]{1,5}))?$/.exec(raw)
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  if (!match || port === undefined || port > 65_535) {
    throw new RangeError(
      `expected host:port such as 127.0.0.1:7070, port up to 65535, found ${JSON.stringify(raw)}`,
    )
  }
  return { host: (match[1] ?? match[2])!, port }
}

/**
 * Whether a listener on `host` accepts connections only from this machine. A name that merely begins with 127 is no
 * address.
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Formats an address as `parseHostPort` reads it. */
export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
