import { spawn } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { stayOwner, userOfCommand } from '../../platform/become-owner.js'
import { findOwnCommand } from '../../platform/own-command.js'
import { BindMounter, type Mounter, type MountPlaces } from './mounter.js'
import { LinkedMounter, serveMounts } from './mounter-link.js'

/** The folders of kubelet in which the plugin has its sockets and notes. */
export function pluginFolders({ kubelet, driver }: Pick<MountPlaces, 'kubelet' | 'driver'>) {
  return { plugin: join(kubelet, 'plugins', driver), registry: join(kubelet, 'plugins_registry', driver) }
}

/** The descriptor of the link to the agent in the process that mounts. */
const LINK_DESCRIPTOR = 3

/**
 * Opens what mounts. Where root became the owner of the cache, a process of its own stays root and does nothing but mount
 * what this one tells it over a socket pair; this one, which the network reaches, gives root up for good. `onGone` is
 * called when that process has ended.
 */
export async function startMounter(places: MountPlaces, onGone: () => void): Promise<Mounter> {
  const user = userOfCommand()
  if (user === undefined) return new BindMounter(places)
  const told: MounterTask = { ...places, uid: process.geteuid!(), gid: process.getegid!() }
  const [program, ...words] = findOwnCommand()
  const child = spawn(program!, [...words, 'agent', '--csi'], {
    ...user,
    env: { PATH: process.env.PATH, DSC_MOUNTER: JSON.stringify(told) },
    stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
  })
  stayOwner()
  const link = child.stdio[LINK_DESCRIPTOR] as Socket
  child.on('error', (error) => link.destroy(error))
  const mounter = await LinkedMounter.open(link, onGone)
  child.unref() // neither keeps an agent from ending
  link.unref()
  return mounter
}

/** The task of the process that the agent starts: the owner of the plugin's folders, and where to mount. */
interface MounterTask extends MountPlaces {
  readonly uid: number
  readonly gid: number
}

/** Mounts what the agent at the other end of the link says, until it is gone. `raw` is what the agent told it first. */
export async function runMounter(raw: string): Promise<void> {
  const task = JSON.parse(raw) as MounterTask
  for (const folder of Object.values(pluginFolders(task))) {
    mkdirSync(folder, { recursive: true, mode: 0o750 })
    chownSync(folder, task.uid, task.gid) // kubelet's own folders belong to root
  }
  await serveMounts(new Socket({ fd: LINK_DESCRIPTOR }), new BindMounter(task))
}
