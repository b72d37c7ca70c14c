import { execFile } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { promisify } from 'node:util'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { UserDirectory } from '../../platform/user-directory.js'
import { writeWhole } from '../output/write-whole.js'
import { AGENT_UNIT } from '../units/agent-unit.js'
import { giveFolder } from './give-folder.js'
import { SERVICE_USER, type SetupStep } from './missing-steps.js'

/** Does what a step says, as root. Rejects with SETUP_FAILED or CONFIG_INVALID. */
export async function applyStep(step: SetupStep): Promise<void> {
  switch (step.kind) {
    case 'user':
      return makeUser()
    case 'folder':
      return giveToService(step.path)
    case 'file':
      await writeWhole(step.path, step.text, 'is /etc read-only? mount it writable, and run dsc setup again')
      return chmodSync(step.path, 0o644)
    case 'start':
      await systemctl('daemon-reload')
      return systemctl('enable', '--now', AGENT_UNIT)
    case 'restart':
      await systemctl('daemon-reload')
      return systemctl('restart', AGENT_UNIT)
  }
}

async function makeUser(): Promise<void> {
  const hint = `make the user ${SERVICE_USER} as this system does, and run dsc setup again`
  if ((await new UserDirectory().idOfGroup(SERVICE_USER)) === undefined)
    await runAsRoot('groupadd', ['--system', SERVICE_USER], hint)
  const words = ['--home-dir', '/var/lib/dsc', '--no-create-home', '--shell', '/usr/sbin/nologin']
  await runAsRoot('useradd', ['--system', '--gid', SERVICE_USER, ...words, SERVICE_USER], hint)
}

async function giveToService(path: string): Promise<void> {
  const user = await new UserDirectory().accountOf(SERVICE_USER)
  if (user === undefined)
    throw new DscError('SETUP_FAILED', `there is no user ${SERVICE_USER} to give ${path} to`, {
      hint: 'getent passwd dsc must find it',
    })
  try {
    giveFolder(path, user)
  } catch (error) {
    if (isDscError(error)) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new DscError('CACHE_ROOT_INVALID', `cannot give ${path} to ${SERVICE_USER}: ${code}`, {
      hint: 'dsc setup --cache-root <dir> takes a folder on a local disk',
      cause: error,
    })
  }
}

function systemctl(...words: readonly string[]): Promise<void> {
  return runAsRoot('systemctl', words, `journalctl -u ${AGENT_UNIT} -n 20 tells why`)
}

async function runAsRoot(program: string, words: readonly string[], hint: string): Promise<void> {
  try {
    await promisify(execFile)(program, [...words])
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { readonly stderr?: string }
    const reason = stderr?.trim() || String(code)
    throw new DscError('SETUP_FAILED', `${program} ${words.join(' ')}: ${reason}`, { hint, cause: error })
  }
}
