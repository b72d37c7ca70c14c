import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { DoorLimits } from './door-limits.js'

const EVE = { uid: 1003, isAdmin: false }
const ADA = { uid: 1001, isAdmin: false }
const ROOT = { uid: 0, isAdmin: true }
const TOO_MANY = { code: 'TOO_MANY_REQUESTS' }

test('a user waits for sixteen datasets at once, and a place that is free again is given again', () => {
  const limits = new DoorLimits()
  const frees = Array.from({ length: 16 }, () => limits.take('stagings', EVE))
  assert.throws(() => limits.take('stagings', EVE), TOO_MANY)
  limits.take('stagings', ADA)
  frees[0]!()
  frees[0]!() // twice is once
  limits.take('stagings', EVE)
  assert.throws(() => limits.take('stagings', EVE), TOO_MANY)
  for (let index = 0; index < 160; index++) limits.take('stagings', ROOT)
  assert.throws(() => limits.take('stagings', ROOT), TOO_MANY)
})

test('a user verifies one thing at a time, and four users do who are no admins', () => {
  const limits = new DoorLimits()
  const users = [1, 2, 3, 4].map((uid) => ({ uid, isAdmin: false }))
  const frees = users.map((user) => limits.take('upkeep', user))
  assert.throws(() => limits.take('upkeep', users[0]!), TOO_MANY)
  const message = 'the service allows each user 1 verification or cleanup at once, and all users together 4'
  assert.throws(() => limits.take('upkeep', EVE), { ...TOO_MANY, message })
  limits.take('upkeep', ROOT)
  frees[0]!()
  limits.take('upkeep', EVE)()
  limits.take('upkeep', users[0]!)
  assert.throws(() => limits.take('upkeep', EVE), TOO_MANY)
})

test('changes have a pace: a hundred, then twenty each second', () => {
  let nowMs = 0
  const limits = new DoorLimits(() => nowMs)
  const count = (changes: number) => {
    for (let index = 0; index < changes; index++) limits.countChange(EVE)
  }
  count(100)
  assert.throws(() => count(1), TOO_MANY)
  limits.countChange(ADA)
  nowMs += 1000
  count(20)
  assert.throws(() => count(1), TOO_MANY)
  nowMs += 3_600_000
  count(100)
  assert.throws(() => count(1), TOO_MANY)
})

test('a thousand leases are too many, until the record says that some have ended', async (context) => {
  const { cache } = await openExampleCache(context)
  const limits = new DoorLimits()
  for (let index = 0; index < 1000; index++) limits.addLease(EVE, `lease-${index}`)
  await limits.requireLease(EVE, cache) // the record has none of them any more
  const held = Array.from({ length: 1000 }, (_, index) => ({
    leaseId: `l${index}`,
    node: 'another', // where this service had a dataset staged for the user
    holder: { kind: 'ttl', userId: EVE.uid },
  }))
  const record = {
    ...cache.record,
    listLeases: async ({ after }: { after?: unknown }) => (after ? [] : held),
  }
  const full = { ...cache, record } as unknown as typeof cache
  for (const { leaseId } of held) limits.addLease(EVE, leaseId)
  await assert.rejects(limits.requireLease(EVE, full), TOO_MANY)
  await limits.requireLease(ADA, full)
  for (let index = 0; index < 1000; index++) limits.addLease(ADA, `lease-${index}`)
  const ofAda = held.map(({ leaseId }) => ({ leaseId, node: 'another', holder: { userId: ADA.uid } }))
  const elsewhere = { ...record, listLeases: async ({ after }: { after?: unknown }) => (after ? [] : ofAda) }
  await limits.requireLease(ADA, { ...cache, record: elsewhere } as unknown as typeof cache) // by other services
})
