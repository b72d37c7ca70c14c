import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Daemons are in sbin, which Debian leaves out of users' PATH. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin']

/**
 * Why a test that starts `program` is skipped, for node:test's `skip`: its Debian package is not installed. False if
 * the program exists. Give a path for a program that the test starts by its path.
 */
export function needs(program: string, debianPackage: string): string | false {
  return needsThat(() => isInstalled(program), `${program} (Debian: apt-get install ${debianPackage})`)
}

/**
 * Why a test is skipped if `isThere` returns false. `DSC_TEST_COMPLETE` asserts that everything is installed, as
 * .ci/run does after installing all packages: then no test is skipped, and one with a missing program fails.
 */
export function needsThat(isThere: () => boolean, what: string): string | false {
  return !process.env.DSC_TEST_COMPLETE && !isThere() && `needs ${what}`
}

/** Why a test that runs a program at a terminal is skipped, or false. Every Debian has `script`. */
export function needsTerminal(): string | false {
  const words = ['-qec', 'true', '/dev/null']
  return needsThat(() => spawnSync('script', words, { stdio: 'ignore' }).status === 0, 'script and /dev/pts')
}

/** Why a test that traces system calls is skipped, or false. */
export function needsStrace(): string | false {
  const words = ['-o', '/dev/null', 'true']
  return (
    needs('strace', 'strace') ||
    needsThat(() => spawnSync('strace', words).status === 0, 'leave to trace processes')
  )
}

/** Why a test that only root can run is skipped, or false; not being root never counts as a missing program. */
export const needsRoot: string | false = process.getuid?.() !== 0 && 'needs root'

function isInstalled(program: string): boolean {
  const places = program.includes('/') ? [program] : FOLDERS.map((folder) => join(folder, program))
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
