import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Asker, type Deed, judgeDeed } from './rights.js'

const RULES = { ownerUid: 900, admins: ['user:ada', 'group:ops'] }
const asker = (uid: number, ...parties: readonly string[]): Asker => ({ uid, parties, shownBy: 'socket' })
const ROOT = asker(0, 'user:root')
const OWNER = asker(900, 'user:dsc')
const ADA = asker(1001, 'user:ada')
const OPS = asker(1002, 'user:bob', 'group:ops')
const EVE = asker(1003, 'user:eve')
const ADMINS = [ROOT, OWNER, ADA, OPS]
const ALL = [...ADMINS, EVE]

const prepare = (source: string, isDeclared = false): Deed => ({ kind: 'prepare', source, isDeclared })

for (const { deed, may } of [
  { deed: { kind: 'look' }, may: ALL },
  { deed: prepare('s3://private/data/', true), may: ALL },
  { deed: prepare('file:///etc/', true), may: ALL },
  { deed: prepare('hf://org/model'), may: ALL },
  { deed: prepare('https://data.example.org/flowers.tar'), may: ALL },
  { deed: prepare('https://data.example.org:8443/flowers.tar'), may: ALL },
  { deed: prepare('s3://private/data/'), may: ADMINS },
  { deed: prepare('file:///etc/'), may: ADMINS },
  { deed: prepare('http://data.example.org/flowers.tar'), may: ADMINS },
  { deed: prepare('https://localhost/'), may: ADMINS },
  { deed: prepare('https://api.localhost/'), may: ADMINS },
  { deed: prepare('https://metadata.google.internal/'), may: ADMINS },
  { deed: prepare('https://169.254.169.254/latest/'), may: ADMINS },
  { deed: prepare('https://2130706433/'), may: ADMINS },
  { deed: prepare('https://[::1]/'), may: ADMINS },
  { deed: prepare('https://data.example.org@127.0.0.1/'), may: ADMINS },
  { deed: { kind: 'hand-over', isKnown: true }, may: ALL },
  { deed: { kind: 'hand-over', isKnown: false }, may: ADMINS },
  { deed: { kind: 'read', readers: undefined }, may: ALL },
  { deed: { kind: 'read', readers: ['user:eve'] }, may: ALL },
  { deed: { kind: 'read', readers: ['group:vision', 'user:ev'] }, may: ADMINS },
  { deed: { kind: 'read', readers: [] }, may: ADMINS },
  { deed: { kind: 'end-lease', holderUid: 1003 }, may: ALL },
  { deed: { kind: 'end-lease', holderUid: 1004 }, may: ADMINS },
  { deed: { kind: 'end-lease', holderUid: undefined }, may: ADMINS },
  { deed: { kind: 'lock' }, may: ADMINS },
  { deed: { kind: 'evict' }, may: ADMINS },
  { deed: { kind: 'undo', of: 'release', isOwn: true }, may: ALL },
  { deed: { kind: 'undo', of: 'release', isOwn: false }, may: ADMINS },
  { deed: { kind: 'undo', of: 'unlock', isOwn: true }, may: ADMINS },
  { deed: { kind: 'undo', of: 'evict', isOwn: true }, may: ADMINS },
  { deed: { kind: 'undo', of: 'cleanup', isOwn: true }, may: ADMINS },
  { deed: { kind: 'declare' }, may: ADMINS },
  { deed: { kind: 'upkeep', of: 'clean up the cache' }, may: ADMINS },
  { deed: { kind: 'upkeep', of: 'repair copies' }, may: ADMINS },
  { deed: { kind: 'upkeep', of: 'adopt folders' }, may: ADMINS },
  { deed: { kind: 'prepare-elsewhere', isDeclared: true, isPaced: false }, may: ALL },
  { deed: { kind: 'prepare-elsewhere', isDeclared: true, isPaced: true }, may: ADMINS },
  { deed: { kind: 'prepare-elsewhere', isDeclared: false, isPaced: false }, may: ADMINS },
] as const)
  test(`${JSON.stringify(deed)} may be done by ${may === ALL ? 'everybody' : 'admins alone'}`, () => {
    const allowed = ALL.filter((each) => judgeDeed(each, deed, RULES).may)
    assert.deepEqual(allowed, may)
  })

test('a key of the gateway makes nobody an admin, whatever its name', () => {
  for (const admin of ADMINS) {
    const byKey = { ...admin, shownBy: 'key' } as const
    assert.equal(judgeDeed(byKey, { kind: 'lock' }, RULES).may, false)
    assert.equal(judgeDeed(byKey, prepare('s3://private/', true), RULES).may, true)
  }
})

test('nobody in a container has other nodes stage for them', () => {
  const deed: Deed = { kind: 'prepare-elsewhere', isDeclared: true, isPaced: false }
  for (const each of ALL) assert.equal(judgeDeed({ ...each, shownBy: 'container' }, deed, RULES).may, false)
})

test('a name that begins like an admin is nobody', () => {
  for (const party of ['user:adam', 'user:ad', 'group:ada', 'user:ops'])
    assert.equal(judgeDeed(asker(1005, party), { kind: 'evict' }, RULES).may, false)
})
