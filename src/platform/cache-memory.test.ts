import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findCacheMemory } from './cache-memory.js'

test('the memory for the page cache is a number of bytes', () => {
  assert.ok(findCacheMemory() > 2 ** 20 && findCacheMemory() < 2 ** 50)
})
