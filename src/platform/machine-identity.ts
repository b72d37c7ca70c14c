import { hostname } from 'node:os'
import type { MachineIdentity } from '../model/node.js'
import { readBootId } from './boot-id.js'
import { hmacSha256 } from './sha256.js'
import { tryReadFile } from './try-read-file.js'

/**
 * The identity of this machine. /etc/machine-id must not leave the machine unchanged (machine-id(5)), so only a digest
 * of it does. Without one, as in most containers, the kernel's random boot id stands for the machine until its next
 * boot.
 */
export function readMachine(): MachineIdentity {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    const found = /^[0-9a-f]{32}$/.exec(tryReadFile(path)?.trim() ?? '')?.[0]
    if (found) {
      const id = hmacSha256(found, 'dsc').slice(0, 32)
      return { id, host: hostname(), isLasting: true }
    }
  }
  return { id: `boot:${readBootId() ?? 'unknown'}`, host: hostname(), isLasting: false }
}
