import { execFileSync, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { temporaryDirectory } from './temporary-directory.js'

/**
 * Processes in it see another machine: a different machine id and boot id, but the same host name and everything else.
 */
export interface PretendMachine {
  start(
    command: readonly string[],
    cwd: string,
  ): { readonly said: (word: string) => Promise<void>; readonly kill: () => void }
}

/** Undefined if this user may not mount. */
export async function startPretendMachine(context: TestContext): Promise<PretendMachine | undefined> {
  const directory = await temporaryDirectory(context)
  const [machineId, bootId] = [join(directory, 'machine-id'), join(directory, 'boot-id')]
  writeFileSync(machineId, `${randomBytes(16).toString('hex')}\n`)
  writeFileSync(bootId, `${randomUUID()}\n`)
  const mounts = `mount --bind ${machineId} /etc/machine-id && mount --bind ${bootId} /proc/sys/kernel/random/boot_id`
  const inside = (command: readonly string[]) => [
    '--mount',
    '--propagation=private',
    'sh',
    '-c',
    `${mounts} && exec "$@"`,
    'sh',
    ...command,
  ]
  try {
    execFileSync('unshare', inside(['true']), { stdio: 'ignore' })
  } catch {
    return undefined
  }
  return {
    start(command, cwd) {
      const child = spawn('unshare', inside(command), {
        cwd,
        stdio: ['ignore', 'pipe', 'inherit'],
        detached: true,
      })
      const kill = () => {
        try {
          process.kill(-child.pid!, 'SIGKILL')
        } catch {
          // It has ended.
        }
      }
      context.after(kill)
      let text = ''
      return {
        kill,
        said: (word) =>
          new Promise((resolve, reject) => {
            child.stdout.on('data', (chunk) => {
              text += String(chunk)
              if (text.includes(word)) resolve()
            })
            child.on('exit', (code) => reject(new Error(`ended with ${code} after ${JSON.stringify(text)}`)))
          }),
      }
    },
  }
}
