import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PackedMembers } from './packed-members.js'
import type { TarMember, TarMemberKind } from './tar-members.js'

const KINDS: readonly TarMemberKind[] = ['file', 'sparse', 'hard-link', 'symbolic-link']

test('members come back as they were packed, whatever their names', () => {
  const members = Array.from({ length: 1000 }, (_, at): TarMember => {
    const headerAt = at * 2 ** 33
    const name = at % 100 === 7 ? `\xff${'n'.repeat(5000)}` : `${at}.jpg`
    const kind = KINDS[at % 4]!
    return { name, headerAt, dataAt: headerAt + 512 * (1 + (at % 3)), length: at * 7, kind }
  })
  const packed = new PackedMembers()
  assert.deepEqual([...packed], [])
  for (const member of members) packed.add(member)
  assert.deepEqual([...packed], members)
  packed.trim()
  assert.deepEqual([packed.count, [...packed]], [1000, members])
})
