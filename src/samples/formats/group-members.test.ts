import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DscError, isDscError } from '../../failure/dsc-error.js'
import { MemberGroups } from './group-members.js'
import type { TarMember, TarMemberKind } from './tar-members.js'

const member = (name: string, at: number, kind: TarMemberKind = 'file'): TarMember => ({
  name,
  headerAt: 1024 * at,
  dataAt: 1024 * at + 512,
  length: 1,
  kind,
})

/** The groups of a shard with these members, in order; a name with ` -> ` or ` => ` is a symbolic or a hard link. */
function group(...names: string[]) {
  const groups = new MemberGroups('a.tar')
  const members = names.map((name, at) => {
    const kind = / -> /.test(name) ? 'symbolic-link' : / => /.test(name) ? 'hard-link' : 'file'
    return member(name.replace(/ [-=]> .*/, ''), at, kind)
  })
  const found = [...groups.of(members)].map(({ key, first, last }) => [key, first.name, last.name])
  return { found, leftOut: groups.leftOut?.reason }
}

for (const { name, members, found, leftOut } of [
  {
    name: 'neighbors of one key are one group',
    members: ['a.jpg', 'a.cls', 'b.seg.png'],
    found: [
      ['a', 'a.jpg', 'a.cls'],
      ['b', 'b.seg.png', 'b.seg.png'],
    ],
    leftOut: undefined,
  },
  {
    name: 'files that macOS writes beside others part no group',
    members: ['./._a.jpg', './a.jpg', './._a.cls', './a.cls'],
    found: [['./a', './a.jpg', './a.cls']],
    leftOut: "2 members without a sample's name: ./._a.jpg, ./._a.cls",
  },
  {
    name: 'names without an extension, links to names and metadata are passed over',
    members: ['README', 'x/LICENSE', '__info__', '__meta__/a.json', 'b.jpg -> a.jpg', 'a.jpg'],
    found: [['a', 'a.jpg', 'a.jpg']],
    leftOut: "5 members without a sample's name: README, x/LICENSE, __info__, …",
  },
  {
    name: 'the key keeps its folders, whose dots do not count',
    members: ['v1.0/a.jpg', 'v1.0/a.cls', 'v1.1/a.jpg'],
    found: [
      ['v1.0/a', 'v1.0/a.jpg', 'v1.0/a.cls'],
      ['v1.1/a', 'v1.1/a.jpg', 'v1.1/a.jpg'],
    ],
    leftOut: undefined,
  },
])
  test(name, () => {
    assert.deepEqual(group(...members), { found, leftOut })
  })

for (const { name, members, message, hint } of [
  {
    name: 'a key in two places',
    members: ['a.cls', 'b.cls', 'a.jpg'],
    message: /^a\.tar: a\.jpg lies apart from other members of the key a/,
    hint: /--sort=name/,
  },
  {
    name: 'a name twice',
    members: ['a.jpg', 'a.cls', 'a.jpg'],
    message: /a\.jpg gives its sample the field jpg twice/,
    hint: /one member of each extension/,
  },
  {
    name: 'extensions that differ in case alone',
    members: ['a.JPG', 'a.jpg'],
    message: /a\.jpg gives its sample the field jpg twice/,
    hint: /one member of each extension/,
  },
  {
    name: 'a hard link',
    members: ['a.jpg', 'b.jpg => a.jpg'],
    message: /b\.jpg is a hard link/,
    hint: /--hard-dereference/,
  },
])
  test(`${name} is refused with the command that mends the shard`, () => {
    assert.throws(
      () => group(...members),
      (error) =>
        isDscError(error, 'USAGE') &&
        message.test(error.message) &&
        hint.test((error as DscError).hint ?? ''),
    )
  })
