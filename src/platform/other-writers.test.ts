import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findOtherWriters } from './other-writers.js'

const ADA = { uid: 1000, gid: 1000 }

for (const { what, mode, gid = 1000, user = ADA, groups = 'ada:x:1000:\n', writers } of [
  { what: 'a folder of one’s own', mode: 0o755, writers: undefined },
  { what: 'a folder of everybody', mode: 0o757, writers: 'everybody' },
  { what: 'a folder of a group', mode: 0o2775, gid: 100, writers: 'the group 100' },
  { what: 'a folder of the group of root', mode: 0o775, gid: 0, writers: undefined },
  { what: 'a folder of a private group', mode: 0o775, writers: undefined },
  { what: 'a private group that no list has', mode: 0o775, groups: '', writers: undefined },
  { what: 'a private group that names its user', mode: 0o775, groups: 'ada:x:1000:ada', writers: undefined },
  {
    what: 'a group of the same number with a further member',
    mode: 0o775,
    groups: 'wheel:x:10:root\ndsc:x:1000:eve',
    writers: 'the group 1000',
  },
  {
    what: 'a group that is the first of several users',
    mode: 0o775,
    gid: 100,
    user: { uid: 1000, gid: 100 },
    writers: 'the group 100',
  },
])
  test(`findOtherWriters knows who may write to ${what}`, () => {
    assert.equal(
      findOtherWriters({ mode, gid }, user, () => groups),
      writers,
    )
  })
