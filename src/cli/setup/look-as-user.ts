import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { DscError } from '../../failure/dsc-error.js'
import { findOwnCommand } from '../../platform/own-command.js'
import { UserDirectory } from '../../platform/user-directory.js'
import { AGENT_UNIT } from '../units/agent-unit.js'

/** The node as an ordinary user sees it. */
export interface UserLook {
  readonly user: string
  /** The command, as the user types it. */
  readonly command: string
  readonly output: string
}

/** Whether a service answers at the door. */
export async function isServed(door: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(door)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/**
 * Runs dsc as the user who called sudo, else as `daemon`, without a configuration: it asks at the door. (`nobody` is
 * whom the kernel names for users of other namespaces, so the door takes nobody of that number.) Rejects with
 * SETUP_FAILED if it fails; waits for a service that is starting, as every client does.
 */
export async function lookAsUser(words: readonly string[], signal: AbortSignal): Promise<UserLook> {
  const sudoUser = process.env.SUDO_USER
  const user = sudoUser && sudoUser !== 'root' ? sudoUser : 'daemon'
  const account = await new UserDirectory().accountOf(user)
  if (account === undefined)
    throw new DscError('SETUP_FAILED', `there is no user ${user} to look as`, {
      hint: 'the node is set up: run dsc status as an ordinary user',
    })
  const command = ['dsc', ...words].join(' ')
  const [program, ...own] = findOwnCommand()
  const child = spawn(program!, [...own, ...words], {
    ...account,
    cwd: '/',
    env: { PATH: process.env.PATH, LANG: process.env.LANG, HOME: '/nonexistent', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stop = () => child.kill()
  signal.addEventListener('abort', stop)
  const read = async (stream: AsyncIterable<Buffer>) => {
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    return Buffer.concat(chunks).toString().trimEnd()
  }
  const ended = new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', (exitCode) => resolve(exitCode)),
  )
  const [output, errors, exitCode] = await Promise.all([read(child.stdout), read(child.stderr), ended])
  signal.removeEventListener('abort', stop)
  if (signal.aborted)
    throw new DscError('INTERRUPTED', `stopped during ${command} of ${user}`, { hint: 'dsc setup again' })
  if (exitCode !== 0)
    throw new DscError('SETUP_FAILED', `the node is set up, but ${command} of ${user} fails:\n${errors}`, {
      hint: `journalctl -u ${AGENT_UNIT} -n 20; then dsc setup again`,
    })
  return { user, command, output }
}
