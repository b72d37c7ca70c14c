import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { findFreePort } from './free-port.js'
import { temporaryDirectory } from './temporary-directory.js'
import { waitFor } from './world.js'

/** Runs the test's own sshd on loopback; `command` logs in with its own key and runs the words after it. */
export async function startSshServer(
  context: Pick<TestContext, 'after'>,
): Promise<{ readonly command: string }> {
  const folder = await temporaryDirectory(context)
  const port = await findFreePort()
  for (const name of ['host', 'user']) {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name)])
  }
  const pidFile = join(folder, 'pid') // sshd writes it once it listens
  const settings = {
    Port: port,
    ListenAddress: '127.0.0.1',
    HostKey: join(folder, 'host'),
    AuthorizedKeysFile: join(folder, 'user.pub'),
    PidFile: pidFile,
    StrictModes: 'no',
    PermitRootLogin: 'yes',
    UsePAM: 'no',
  }
  const config = join(folder, 'sshd_config')
  writeFileSync(
    config,
    Object.entries(settings)
      .map((line) => `${line.join(' ')}\n`)
      .join(''),
  )
  mkdirSync('/run/sshd', { recursive: true })
  // As a daemon: otherwise the test would be an ancestor of the commands that the server runs.
  execFileSync('/usr/sbin/sshd', ['-f', config])
  const pid = await waitFor('sshd', () => {
    const text = existsSync(pidFile) ? readFileSync(pidFile, 'utf8') : ''
    return text.endsWith('\n') && Number(text)
  })
  context.after(() => process.kill(pid, 'SIGKILL'))
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR']
  const words = ['ssh', '-p', port, '-i', join(folder, 'user'), ...options.map((option) => `-o ${option}`)]
  return { command: `${words.join(' ')} ${userInfo().username}@127.0.0.1` }
}
