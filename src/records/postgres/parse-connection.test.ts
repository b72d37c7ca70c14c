import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { findPassword, listServers, parsePostgresUrl, parseService } from './parse-connection.js'
import { readConnection } from './read-connection.js'

for (const [url, settings] of [
  [
    'postgres://u:p%2Fw@h1:1,h2/db?target_session_attrs=read-write',
    {
      user: 'u',
      password: 'p/w',
      host: 'h1,h2',
      port: '1,5432',
      dbname: 'db',
      target_session_attrs: 'read-write',
    },
  ],
  ['postgresql://[::1]:7/db', { host: '::1', port: '7', dbname: 'db' }],
  ['postgres:///db?host=/run/postgresql', { dbname: 'db', host: '/run/postgresql' }],
  ['postgres://%2Frun%2Fpg/db', { host: '/run/pg', port: '5432', dbname: 'db' }],
  ['postgres://', {}],
] as const) {
  test(`parsePostgresUrl reads ${url}`, () => assert.deepEqual(parsePostgresUrl(url), settings))
}

for (const url of [
  'postgres://u:CAN/ARY@h/db',
  'postgres://u:12/CANARY@h/db',
  'postgres://u:CAN@ARY@h/db',
  'postgres://u:CAN?ARY@h/db',
  'postgres://u:CANARY%@h/db',
  'postgres://u:CANARY@h:99999/db',
]) {
  test(`parsePostgresUrl refuses ${url} and shows nothing of it`, () => {
    assert.throws(
      () => parsePostgresUrl(url),
      (error: Error) => !/CAN|ARY/.test(String(error.stack)),
    )
  })
}

test('listServers pairs hosts with ports, or gives all the one port', () => {
  assert.deepEqual(listServers({ host: 'a,b', port: '1,2' }), [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
  ])
  assert.deepEqual(listServers({ host: 'a,b' })[1], { host: 'b', port: 5432 })
  assert.throws(() => listServers({ host: 'a,b,c', port: '1,2' }), /one for each of 3 hosts/)
})

test('parseService finds a section, findPassword the first line that fits', () => {
  const text = '# c\n[other]\nhost=x\n[dsc]\nhost = db.example\nport=5433\n\n[last]\nhost=y\n'
  assert.deepEqual(parseService(text, 'dsc'), { host: 'db.example', port: '5433' })
  assert.equal(parseService(text, 'none'), undefined)
  const passwords = '#h:1:d:u:no\nh:1:other:u:no\nh:*:d:u:a\\:b\\\\c\n*:*:*:*:last\n'
  assert.equal(findPassword(passwords, { host: 'h', port: 1, database: 'd', user: 'u' }), 'a:b\\c')
  assert.equal(findPassword(passwords, { host: 'z', port: 1, database: 'd', user: 'u' }), 'last')
})

test('readConnection takes URL before service before environment, and the password of PGPASSFILE', async (context) => {
  const home = await temporaryDirectory(context)
  writeFileSync(join(home, '.pg_service.conf'), '[dsc]\nhost=s1,s2\nuser=from-service\ndbname=from-service\n')
  const passFile = join(home, 'passwords')
  writeFileSync(passFile, '*:*:*:*:secret\n', { mode: 0o600 })
  const environment = {
    HOME: home,
    PGSERVICE: 'dsc',
    PGUSER: 'from-environment',
    PGPASSFILE: passFile,
    PGSSLMODE: 'disable',
  }
  const plan = readConnection('postgres:///from-url', environment)
  assert.deepEqual([plan.database, plan.user, plan.kind], ['from-url', 'from-service', 'read-write'])
  assert.equal(plan.location, 'postgres://s1:5432,s2:5432/from-url')
  assert.deepEqual(
    plan.targets.map(({ host, password, tls }) => [host, password, tls]),
    [
      ['s1', 'secret', undefined],
      ['s2', 'secret', undefined],
    ],
  )
  chmodSync(passFile, 0o644)
  assert.equal(readConnection('postgres:///x', environment).targets[0]!.password, undefined)
})

test('readConnection encrypts as sslmode says', () => {
  const environment = { HOME: '/nonexistent' }
  const tls = (mode: string) =>
    readConnection(`postgres://h/d?sslmode=${mode}`, environment).targets.map((each) => each.tls)
  assert.deepEqual(tls('disable'), [undefined])
  assert.deepEqual(tls('prefer'), [{ rejectUnauthorized: false }, undefined])
  assert.deepEqual(tls('require'), [{ rejectUnauthorized: false }])
  assert.throws(() => tls('verify-full'), /needs a root certificate/)
  assert.deepEqual(
    readConnection('postgres://h/d?sslmode=verify-full&sslrootcert=system', environment).targets[0]!.tls,
    { ca: undefined },
  )
  assert.throws(() => tls('always'), /found always/)
})
