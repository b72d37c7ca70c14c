import { DscError } from '../../failure/dsc-error.js'
import { type HostPort, parseHostPort } from '../../model/host-port.js'

/** Settings, keyed by libpq's names in connection strings. */
export type LibpqSettings = Readonly<Record<string, string>>

/** The variables that libpq reads, with their settings. */
const VARIABLES: LibpqSettings = {
  PGHOST: 'host',
  PGPORT: 'port',
  PGDATABASE: 'dbname',
  PGUSER: 'user',
  PGPASSWORD: 'password',
  PGPASSFILE: 'passfile',
  PGSERVICE: 'service',
  PGSSLMODE: 'sslmode',
  PGSSLCERT: 'sslcert',
  PGSSLKEY: 'sslkey',
  PGSSLROOTCERT: 'sslrootcert',
  PGTARGETSESSIONATTRS: 'target_session_attrs',
  PGCONNECT_TIMEOUT: 'connect_timeout',
  PGOPTIONS: 'options',
  PGAPPNAME: 'application_name',
}

const DEFAULT_PORT = 5432

/** Settings from the environment. */
export function readVariables(environment: Readonly<Record<string, string | undefined>>): LibpqSettings {
  const given = Object.entries(VARIABLES).flatMap(([variable, setting]) => {
    const value = environment[variable]
    return value ? [[setting, value]] : []
  })
  return Object.fromEntries(given) as LibpqSettings
}

/**
 * Parses `postgres://user:password@host:port,host:port/database?setting=value` as libpq does; pg's own parser refuses a
 * list of hosts with ports. Throws CONFIG_INVALID, which never shows the text before the last `@`.
 */
export function parsePostgresUrl(url: string): LibpqSettings {
  const match = /^postgres(?:ql)?:\/\/(?:([^@/?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(url)
  const [, credentials, authority = '', database = '', query = ''] = match ?? []
  if (!match || database.includes('@') || database.includes('/') || authority.includes('@')) {
    throw unreadable('a /, ? or @ in the user or password must be written as %2F, %3F or %40')
  }
  const [user, ...password] = credentials?.split(':') ?? []
  const hosts = authority === '' ? [] : authority.split(',').map(parseHost)
  const named: [string, string | undefined][] = [
    ['user', user],
    ['password', credentials?.includes(':') ? password.join(':') : undefined],
    ['dbname', database],
  ]
  const settings: [string, string][] = []
  for (const [name, value] of named) if (value) settings.push([name, decode(value)])
  if (hosts.length > 0) {
    settings.push(['host', hosts.map(({ host }) => decode(host)).join(',')])
    settings.push(['port', hosts.map(({ port }) => port || DEFAULT_PORT).join(',')])
  }
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const at = pair.indexOf('=')
    if (at < 1) throw unreadable('expected <setting>=<value> after the ?')
    const name = decode(pair.slice(0, at))
    settings.push([name === 'database' ? 'dbname' : name, decode(pair.slice(at + 1))])
  }
  return Object.fromEntries(settings)
}

/** Servers to try, in order. */
export function listServers(settings: LibpqSettings): readonly HostPort[] {
  const hosts = (settings.host ?? 'localhost').split(',')
  const ports = (settings.port ?? String(DEFAULT_PORT)).split(',')
  if (ports.length !== 1 && ports.length !== hosts.length) {
    throw unreadable(`expected one port, or one for each of ${hosts.length} hosts, found ${ports.length}`)
  }
  return hosts.map((host, index) => {
    const port = Number(ports.length === 1 ? ports[0] : ports[index]) || DEFAULT_PORT
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw unreadable('expected ports from 1 to 65535')
    }
    return { host: host === '' ? 'localhost' : host, port }
  })
}

/** Finds the section of a service in a pg_service.conf. */
export function parseService(text: string, service: string): LibpqSettings | undefined {
  let found: Record<string, string> | undefined
  let isInside = false
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    const section = /^\[(.*)\]$/.exec(line)?.[1]
    if (section !== undefined) {
      isInside = section === service
      if (isInside) found ??= {}
    } else if (isInside && found && line !== '' && !line.startsWith('#')) {
      const at = line.indexOf('=')
      if (at > 0) found[line.slice(0, at).trim()] = line.slice(at + 1).trim()
    }
  }
  return found
}

/** Finds the password for a server in a .pgpass: `host:port:database:user:password`, `*` for any. */
export function findPassword(
  text: string,
  wanted: HostPort & { readonly database: string; readonly user: string },
): string | undefined {
  const host = wanted.host.startsWith('/') ? 'localhost' : wanted.host
  const fields = [host, String(wanted.port), wanted.database, wanted.user]
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue
    const parts = splitEscaped(line.replace(/\r$/, ''))
    if (parts.length < 5) continue
    if (fields.every((field, index) => parts[index] === '*' || parts[index] === field)) {
      return parts.slice(4).join(':')
    }
  }
  return undefined
}

/** Splits at colons; a backslash escapes the next character. */
function splitEscaped(line: string): readonly string[] {
  const parts = ['']
  for (let index = 0; index < line.length; index++) {
    const character = line[index]!
    if (character === ':') parts.push('')
    else parts[parts.length - 1] += character === '\\' && index + 1 < line.length ? line[++index]! : character
  }
  return parts
}

function parseHost(raw: string): HostPort {
  if (raw === '') return { host: 'localhost', port: DEFAULT_PORT }
  if (/^%2f/i.test(raw)) return { host: raw, port: DEFAULT_PORT } // the folder of a socket
  try {
    return parseHostPort(raw.replace(/:$/, ''), DEFAULT_PORT)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw unreadable(
      'a /, ? or @ in the user or password must be written as %2F, %3F or %40; ports go up to 65535',
    )
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw unreadable('a % in the user or password must be written as %25')
  }
}

function unreadable(why: string): DscError {
  return new DscError('CONFIG_INVALID', `record: the postgres:// URL cannot be read: ${why}`, {
    hint: 'leave the password out of it: PGPASSWORD or ~/.pgpass hold it as well',
  })
}
