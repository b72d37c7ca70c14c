import type { DiskUsage } from '../../model/policy.js'

/** The facts about a mounted file system that the suggestion needs. */
export interface MountCandidate {
  readonly path: string
  readonly kind: { readonly name: string; readonly isNetwork: boolean }
  readonly usage: DiskUsage
  readonly isWritable: boolean
}

/** A folder for the copies, and the file system that would contain it. */
export interface SuggestedRoot {
  readonly root: string
  readonly kindName: string
  readonly capacityBytes: number
  readonly freeBytes: number
}

/** Memory and container layers keep data only for a while. */
const SHORT_LIVED = new Set(['tmpfs', 'ramfs', 'overlay', 'squashfs'])
/** Separately mounted parts of a system that are no place for data. */
const SYSTEM =
  /^\/(boot|efi|proc|sys|dev|run|etc|usr|nix|gnu|snap|var\/lib\/(docker|containerd|kubelet|snapd))(\/|$)/

/**
 * Suggests a folder for copies: on the local file system with the most free space that this user can write to. Suggests
 * the file system of `homeCache` (dsc's default folder) through `homeCache` itself. Undefined if nothing is better.
 * Equal space falls back to the path.
 */
export function suggestCacheRoot(
  mounts: readonly MountCandidate[],
  homeCache: string,
): SuggestedRoot | undefined {
  const homeMount = mounts
    .filter(({ path }) => path === '/' || homeCache === path || homeCache.startsWith(`${path}/`))
    .toSorted((a, b) => a.path.length - b.path.length)
    .at(-1)
  const [best] = mounts
    .filter(
      (mount) => mount === homeMount || (mount.isWritable && mount.path !== '/' && !SYSTEM.test(mount.path)),
    )
    .filter(({ kind }) => !kind.isNetwork && !SHORT_LIVED.has(kind.name))
    .toSorted((a, b) => b.usage.freeBytes - a.usage.freeBytes || (a.path < b.path ? -1 : 1))
  if (best === undefined) return undefined
  return {
    root: best === homeMount ? homeCache : `${best.path}/dsc`,
    kindName: best.kind.name,
    capacityBytes: best.usage.capacityBytes,
    freeBytes: best.usage.freeBytes,
  }
}

/**
 * Suggests how much space downloads should leave free on a disk that others use too: 5 % of it, at most 100 GiB, in
 * whole GiB where it is that large, else in whole MiB.
 */
export function suggestMinFree({ capacityBytes }: { readonly capacityBytes: number }): number {
  const bytes = Math.min(capacityBytes * 0.05, 100 * 2 ** 30)
  const unit = bytes >= 2 ** 30 ? 2 ** 30 : 2 ** 20
  return Math.floor(bytes / unit) * unit
}
