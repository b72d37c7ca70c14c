import type { Mounter } from '../agent/csi/mounter.js'

/** Mounts that exist in memory alone: target → the folder that lies there. */
export interface MemoryMounter extends Mounter {
  readonly mounts: Map<string, string>
  /** Takes all mounts away, as a reboot does. */
  reboot(): void
}

export function makeMemoryMounter(): MemoryMounter {
  const mounts = new Map<string, string>()
  return {
    mounts,
    reboot: () => mounts.clear(),
    list: () => [...mounts.keys()].map((path) => ({ path, isReadOnly: true })),
    async mount(source, target) {
      mounts.set(target, source)
    },
    async unmount(target) {
      mounts.delete(target)
    },
  }
}
