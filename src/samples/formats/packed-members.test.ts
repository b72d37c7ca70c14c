import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PackedMembers } from './packed-members.js'
import type { TarMember } from './tar-members.js'

test('members come back as they were packed, whatever their names', () => {
  const members = Array.from({ length: 1000 }, (_, at): TarMember => {
    const headerAt = at * 2 ** 33
    const name = at % 100 === 7 ? `\xff${'n'.repeat(5000)}` : `${at}.jpg`
    return { name, headerAt, dataAt: headerAt + 512 * (1 + (at % 3)), length: at * 7, isSparse: at % 5 === 0 }
  })
  const packed = new PackedMembers()
  assert.deepEqual([...packed], [])
  for (const member of members) packed.add(member)
  assert.deepEqual([...packed], members)
  packed.trim()
  assert.deepEqual([packed.count, [...packed]], [1000, members])
})
