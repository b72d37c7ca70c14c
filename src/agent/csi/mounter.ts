import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findHeld, namesBelow } from '../../cache/held-cache.js'
import { DscError } from '../../failure/dsc-error.js'
import { unlessCode } from '../../failure/unless-code.js'
import { type MountEntry, readMountTable } from '../../platform/mount-table.js'

/** Mounts copies into pods. Needs the rights of root; everything else in this folder does not. */
export interface Mounter {
  /** The mounts of this machine, as this process sees them; the last one of a path is what lies there. */
  list(): readonly MountEntry[]
  /** Binds the folder `source` of a copy to `target`, read-only. Creates `target`, but no folder above it. */
  mount(source: string, target: string): Promise<void>
  /** Unmounts everything at `target` and removes it. Nothing there: nothing to do. */
  unmount(target: string): Promise<void>
}

/** The mount at `target`; undefined if nothing is mounted there. */
export function findMount(mounter: Pick<Mounter, 'list'>, target: string): MountEntry | undefined {
  return mounter.list().findLast(({ path }) => path === target)
}

/** Where a mounter may mount from and to. */
export interface MountPlaces {
  /** The cache root. */
  readonly root: string
  /** Kubelet's folder. */
  readonly kubelet: string
  /** Name of the driver. */
  readonly driver: string
}

const OPTIONS = 'bind,ro,nosuid,nodev'
/** The descriptor of the copy's folder in the program that mounts it. */
const SOURCE_DESCRIPTOR = 3

/**
 * Mounts folders of the cache at `root` into the driver's volumes of pods below `kubelet`, and refuses all other paths:
 * the agent that asks may be compromised. It follows no link below the root, and mounts the folder that it opened, even
 * if another has taken the name since.
 */
export class BindMounter implements Mounter {
  readonly #root: string
  readonly #driver: string
  readonly #pods: string

  constructor({ root, kubelet, driver }: MountPlaces) {
    this.#root = root
    this.#driver = driver
    this.#pods = `${kubelet}/pods/`
  }

  list(): readonly MountEntry[] {
    return readMountTable()
  }

  async mount(source: string, target: string): Promise<void> {
    this.#requirePodVolume(target)
    using held = findHeld(this.#root, namesBelow(this.#root, source))
    if (held === undefined) throw new DscError('COPY_NOT_FOUND', `${source} is gone`)
    await this.#unmountAll(target) // what a killed agent may have left half done, still writable
    unlessCode(['EEXIST'], () => mkdirSync(target, { mode: 0o750 }))
    const descriptor = Number(/\d+$/.exec(held.path)?.[0])
    const from = `/proc/self/fd/${SOURCE_DESCRIPTOR}`
    await run('mount', ['--no-canonicalize', '-o', OPTIONS, from, target], descriptor)
  }

  async unmount(target: string): Promise<void> {
    this.#requirePodVolume(target)
    await this.#unmountAll(target)
    unlessCode(['ENOENT'], () => rmdirSync(target)) // never what is in it: the copy, had it not been unmounted
  }

  async #unmountAll(target: string): Promise<void> {
    while (findMount(this, target)) await run('umount', ['--no-canonicalize', target])
  }

  /** `<kubelet>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/<mount point>`: kubelet's, and no pod can write there. */
  #requirePodVolume(target: string): void {
    const rest = target.startsWith(this.#pods) ? target.slice(this.#pods.length) : ''
    const names = rest.split('/')
    const isVolume = names.length === 5 && names[1] === 'volumes' && names[2] === 'kubernetes.io~csi'
    if (isVolume && names.every((name) => name !== '' && name !== '.' && name !== '..')) {
      requireDriver(target, this.#driver)
      return
    }
    throw new DscError(
      'USAGE',
      `target_path: expected a CSI volume of a pod below ${this.#pods}, found ${JSON.stringify(target)}`,
      { hint: "agent.csi.kubelet in dsc.yaml is kubelet's --root-dir" },
    )
  }
}

/**
 * Throws USAGE if the volume belongs to another driver. Kubelet notes the driver beside the mount point of each CSI
 * volume, from before the mount until after the unmount: a path without a note has no volume of another driver.
 */
function requireDriver(target: string, driver: string): void {
  const path = join(dirname(target), 'vol_data.json')
  const found = findDriver(path)
  if (found === undefined || found === driver) return
  throw new DscError('USAGE', `${path}: expected a volume of ${driver}, found ${found}`)
}

/** The driver in kubelet's note; undefined if there is no note. */
function findDriver(path: string): string | undefined {
  try {
    const raw = JSON.parse(readFileSync(path, 'utf8')) as { readonly driverName?: unknown } | null
    return typeof raw?.driverName === 'string' ? raw.driverName : 'a damaged note'
  } catch (error) {
    if (error instanceof SyntaxError) return 'a damaged note'
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Runs one of Linux' mount programs. `descriptor` becomes its descriptor 3. */
async function run(program: string, words: readonly string[], descriptor?: number): Promise<void> {
  const inherited = descriptor === undefined ? [] : [descriptor]
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe', ...inherited] })
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve)
  }).catch((error: NodeJS.ErrnoException) => {
    throw new DscError('CONFIG_INVALID', `cannot run ${program} (${error.code})`, {
      hint: 'apt-get install mount',
      cause: error,
    })
  })
  if (code === 0) return
  throw new DscError('IO_FAILED', `${program} ended with ${code}: ${said.trim()}`, {
    hint:
      program === 'umount'
        ? `fuser -vm ${words.at(-1)}`
        : 'dsc agent --csi needs root and, in a container, privileged: true',
  })
}
