import { readFileSync, statSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { DscError } from '../../failure/dsc-error.js'
import type { HostPort } from '../../model/host-port.js'
import {
  findPassword,
  type LibpqSettings,
  listServers,
  parsePostgresUrl,
  parseService,
  readVariables,
} from './parse-connection.js'

/** The required kind of server; `any` takes the first that answers. */
type SessionKind = 'any' | 'read-write' | 'read-only' | 'primary' | 'standby'

/** One way to reach a server. */
export interface ServerTarget extends HostPort {
  /** Undefined: unencrypted. */
  readonly tls: ConnectionOptions | undefined
  readonly password: string | undefined
}

/** How to reach the record: as libpq would, from URL, service file, environment and password file. */
export interface ConnectionPlan {
  /** In the order of attempts. */
  readonly targets: readonly ServerTarget[]
  readonly user: string
  readonly database: string
  readonly applicationName: string
  readonly options: string | undefined
  readonly kind: SessionKind
  /** Servers and database for messages, without user and password. */
  readonly location: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** Collects the settings of the connection. Throws CONFIG_INVALID, never with a secret in it. */
export function readConnection(url: string, environment: Environment = process.env): ConnectionPlan {
  const home = environment.HOME || homedir()
  const given = { ...readVariables(environment), ...parsePostgresUrl(url) }
  const service = given.service === undefined ? {} : readService(given.service, environment, home)
  const settings: LibpqSettings = { ...readVariables(environment), ...service, ...parsePostgresUrl(url) }
  const servers = listServers(settings)
  const user = settings.user ?? userInfo().username
  const database = settings.dbname ?? user
  const passwords = settings.password === undefined ? readPasswords(settings, home) : ''
  const targets = servers.flatMap((server) => {
    const password = settings.password ?? findPassword(passwords, { ...server, user, database })
    return encryptions(settings, server, home).map((tls): ServerTarget => ({ ...server, tls, password }))
  })
  const at = servers.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',')
  return {
    targets,
    user,
    database,
    applicationName: settings.application_name ?? 'dsc',
    options: settings.options,
    kind: readKind(settings.target_session_attrs, servers.length),
    location: `postgres://${at}/${database}`,
  }
}

/** dsc writes to the record, so of several servers it must find one that takes writes. */
function readKind(raw: string | undefined, servers: number): SessionKind {
  const kinds: readonly string[] = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby']
  if (raw !== undefined && !kinds.includes(raw)) {
    throw new DscError(
      'CONFIG_INVALID',
      `target_session_attrs: expected one of ${kinds.join(', ')}, found ${raw}`,
    )
  }
  if (raw === undefined || raw === 'prefer-standby') return servers > 1 ? 'read-write' : 'any'
  return raw as SessionKind
}

function readService(service: string, environment: Environment, home: string): LibpqSettings {
  const files = [
    environment.PGSERVICEFILE || join(home, '.pg_service.conf'),
    join(environment.PGSYSCONFDIR || '/etc/postgresql-common', 'pg_service.conf'),
  ]
  for (const file of files) {
    const found = parseService(readOr(file, ''), service)
    if (found) return found
  }
  throw new DscError(
    'CONFIG_INVALID',
    `the PostgreSQL service ${service} is in none of ${files.join(', ')}`,
    { hint: 'PGSERVICE and PGSERVICEFILE name it' },
  )
}

/** Ignores a file that others may read, as libpq does. */
function readPasswords(settings: LibpqSettings, home: string): string {
  const file = settings.passfile ?? join(home, '.pgpass')
  const found = statSync(file, { throwIfNoEntry: false })
  return found?.isFile() && (found.mode & 0o077) === 0 ? readOr(file, '') : ''
}

/** Ways to encrypt, in order of preference, as libpq documents `sslmode`. */
function encryptions(
  settings: LibpqSettings,
  { host }: HostPort,
  home: string,
): readonly (ConnectionOptions | undefined)[] {
  if (host.startsWith('/')) return [undefined]
  const mode = settings.sslmode ?? 'prefer'
  const caFile = settings.sslrootcert ?? join(home, '.postgresql/root.crt')
  const ca = caFile === 'system' ? undefined : readOr(caFile, undefined)
  const keys = readKeys(settings, home)
  const unproven = { ...keys, rejectUnauthorized: false }
  const byAuthority = { ...keys, ca, checkServerIdentity: () => undefined }
  switch (mode) {
    case 'disable':
      return [undefined]
    case 'allow':
      return [undefined, unproven]
    case 'prefer':
      return [unproven, undefined]
    case 'require': // with a root certificate it means verify-ca, according to libpq
      return [ca === undefined ? unproven : byAuthority]
    case 'verify-ca':
    case 'verify-full':
      if (ca === undefined && settings.sslrootcert !== 'system') {
        throw new DscError(
          'CONFIG_INVALID',
          `sslmode=${mode} needs a root certificate, and there is no ${caFile}`,
          {
            hint: 'sslrootcert=<file> in the URL or PGSSLROOTCERT; sslrootcert=system takes those of the system',
          },
        )
      }
      return [mode === 'verify-ca' ? byAuthority : { ...keys, ca }]
    default:
      throw new DscError(
        'CONFIG_INVALID',
        `sslmode: expected disable, allow, prefer, require, verify-ca or verify-full, found ${mode}`,
      )
  }
}

function readKeys(settings: LibpqSettings, home: string): { readonly cert?: string; readonly key?: string } {
  const cert = readOr(settings.sslcert ?? join(home, '.postgresql/postgresql.crt'), undefined)
  const key = readOr(settings.sslkey ?? join(home, '.postgresql/postgresql.key'), undefined)
  return cert !== undefined && key !== undefined ? { cert, key } : {}
}

function readOr<Other>(file: string, other: Other): string | Other {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return other
    throw error
  }
}
