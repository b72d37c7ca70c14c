import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { findFreePort } from './free-port.js'
import { temporaryDirectory } from './temporary-directory.js'
import { waitFor } from './world.js'

const PATH = `${process.env.PATH}:/usr/sbin`
const NOBODY = 65_534

/**
 * Starts the real PgBouncer in front of a server, in transaction mode with few connections. Returns a function that
 * routes a database's URL through it.
 */
export async function startPgBouncer(
  context: Pick<TestContext, 'after'>,
  serverPort: number,
): Promise<(url: string) => string> {
  const directory = await temporaryDirectory(context)
  const port = await findFreePort()
  const settings = join(directory, 'pgbouncer.ini')
  writeFileSync(join(directory, 'users.txt'), '"dsc" ""\n')
  writeFileSync(
    settings,
    `[databases]\n* = host=127.0.0.1 port=${serverPort} user=dsc\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\n` +
      `unix_socket_dir =\nauth_type = any\nauth_file = ${join(directory, 'users.txt')}\npool_mode = transaction\n` +
      'default_pool_size = 5\nmax_client_conn = 500\nserver_login_retry = 1\n',
  )
  chmodSync(directory, 0o755)
  const isRoot = process.getuid?.() === 0 // it refuses to run as root
  if (isRoot) chownSync(directory, NOBODY, NOBODY)
  const child: ChildProcess = spawn('pgbouncer', [settings], {
    env: { ...process.env, PATH },
    stdio: 'ignore',
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  })
  context.after(() => void child.kill('SIGKILL'))
  await waitFor('PgBouncer to answer', async () => {
    const client = new pg.Client({ connectionString: `postgres://dsc@127.0.0.1:${port}/postgres` })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      return true
    } catch {
      return false
    }
  })
  return (url) => url.replace(`:${serverPort}/`, `:${port}/`)
}
