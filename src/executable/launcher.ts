import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { getAsset, getRawAsset } from 'node:sea'
import { findHomeDirectory } from '../platform/this-user.js'
import { type CarriedProgram, DAY_MS, markUsed, type Places, unpackProgram } from './unpack-program.js'

// The start of the executable file: finds or unpacks the program that it carries, and starts it as `node bin/dsc.js`.
try {
  const program: CarriedProgram = JSON.parse(getAsset('program.json', 'utf8'))
  const folder = unpackProgram(program, listPlaces(), (path) => new Uint8Array(getRawAsset(path)))
  const entry = join(folder, 'bin/dsc.js')
  setInterval(() => markUsed(folder, Date.now()), DAY_MS).unref()
  process.argv[1] = entry
  createRequire(entry)(entry)
} catch (error) {
  process.stderr.write(`dsc: ${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}

/**
 * Beside the executable, where a package put it; else in the user's cache; where that cannot be written (a home that is
 * read-only or missing), in places for files that may go.
 */
function listPlaces(): Places {
  const { XDG_CACHE_HOME, XDG_RUNTIME_DIR } = process.env
  const own = `dsc-program-${process.geteuid?.()}`
  return {
    // Without /proc Node does not know its own path.
    installed: isAbsolute(process.execPath) ? [join(dirname(process.execPath), '../lib/dsc')] : [],
    writable: [
      XDG_CACHE_HOME ? join(XDG_CACHE_HOME, 'dsc-program') : join(findHomeDirectory(), '.cache/dsc-program'),
      ...(XDG_RUNTIME_DIR ? [join(XDG_RUNTIME_DIR, 'dsc-program')] : []),
      ...[tmpdir(), '/var/tmp', '/dev/shm'].map((place) => join(place, own)),
    ],
  }
}
