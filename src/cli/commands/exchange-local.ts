import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { DscError } from '../../failure/dsc-error.js'
import { readJsonLines } from '../../frames/lines.js'
import type { HostPort } from '../../model/host-port.js'
import { findOwnCommand } from '../../platform/own-command.js'

/** A rendezvous in its own process, so that the measured processes do not slow it down. */
interface LocalRendezvous extends HostPort {
  readonly close: () => Promise<void>
}

/** Starts `dsc` with `words` and --json, with readable stdout and inherited stderr. */
export function spawnDsc(words: readonly string[]): ChildProcess {
  const [program, ...own] = findOwnCommand()
  return spawn(program!, [...own, ...words, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** The first line that `child` prints, as JSON. */
export async function readResult(child: ChildProcess): Promise<unknown> {
  for await (const result of readJsonLines(child.stdout!, (raw) => raw)) return result
  throw new DscError('PEER_LOST', `${child.spawnargs.join(' ')} ended without a result`)
}

/** Starts a rendezvous on loopback, on a free port. */
export async function openLocalRendezvous(): Promise<LocalRendezvous> {
  const child = spawnDsc(['exchange', 'serve', '--listen', '127.0.0.1:0'])
  const { host, port } = (await readResult(child)) as HostPort
  return {
    host,
    port,
    async close() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
