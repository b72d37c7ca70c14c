import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { allocatePages } from './shared-pages.js'

const MIB = 2 ** 20

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function heldMib(): number {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024
}

test('pages take no memory before they are written to, and give it back with their last view', () => {
  const beforeMib = heldMib()
  const last = writeAndForget(beforeMib)
  collectGarbage()
  collectGarbage() // waits for what earlier tests left to other threads
  // Memory from the C library's heap stays there while anything behind it is in use.
  assert.ok(heldMib() < beforeMib + 32, `${heldMib() - beforeMib} MiB`)
  assert.equal(last[0], 1)
})

test('a view of pages keeps its length and begins with zeros', () => {
  const numbers = allocatePages(Float64Array, 10)
  assert.deepEqual([numbers.length, numbers[9], numbers[10]], [10, 0, undefined])
  assert.equal(allocatePages(Uint8Array, 0).length, 0)
})

/** Allocates 256 MiB in pieces; returns the last one. */
function writeAndForget(beforeMib: number): Uint32Array {
  const pieces = Array.from({ length: 1024 }, () => allocatePages(Uint32Array, MIB / 16))
  assert.ok(heldMib() < beforeMib + 32)
  for (const piece of pieces) piece.fill(1)
  assert.ok(heldMib() > beforeMib + 240)
  return pieces.at(-1)!
}
