import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { constants } from 'node:os'
import { test } from 'node:test'
import { atEnd, atEndNow } from './closers.js'
import { DscError } from './dsc-error.js'
import { explainSystemError } from './system-failure.js'

function refusal(code: string, syscall?: string): Error {
  return Object.assign(new Error(`${code}: refused`), { code, ...(syscall && { syscall, path: '/nvme/x' }) })
}

for (const { code, failure } of [
  { code: 'ENOSPC', failure: 'DISK_FULL' },
  { code: 'EDQUOT', failure: 'DISK_FULL' },
  { code: 'EMFILE', failure: 'SYSTEM_LIMIT' },
  { code: 'EFBIG', failure: 'SYSTEM_LIMIT' },
  { code: 'EIO', failure: 'IO_FAILED' },
  { code: 'EACCES', failure: 'IO_FAILED' },
]) {
  test(`${code} is ${failure}, with its path and a hint`, () => {
    const found = explainSystemError(refusal(code, 'open'))
    assert.equal(found?.code, failure)
    assert.match(found.message, /^\/nvme\/x: .*refused/)
    assert.ok(found.hint)
  })
}

for (const code of [
  'SQLITE_FULL',
  'SQLITE_IOERR_SHMSIZE',
  'SQLITE_CANTOPEN',
  'SQLITE_CORRUPT',
  'SQLITE_BUSY',
]) {
  test(`${code} is a failure with a hint`, () => assert.ok(explainSystemError(refusal(code))?.hint))
}

test('of all refusals of the kernel, only those of our own making are bugs', () => {
  const bugs = Object.keys(constants.errno).filter(
    (code) => explainSystemError(refusal(code, 'open')) === undefined,
  )
  assert.deepEqual(bugs.toSorted(), ['EBADF', 'EDOM', 'EFAULT', 'EINVAL', 'ENOSYS', 'ENOTSOCK'])
})

test('what Node.js itself throws is a refusal of the kernel', () => {
  assert.throws(
    () => readdirSync('/nonexistent/folder'),
    (error) => explainSystemError(error)?.code === 'IO_FAILED',
  )
})

test('a bug stays one, and an explained failure as it is', () => {
  assert.equal(explainSystemError(new TypeError('x is undefined')), undefined)
  const known = new DscError('USAGE', 'no')
  assert.equal(explainSystemError(known), known)
})

test('where closing fails after a failure, the first one is told', async () => {
  const known = new DscError('SOURCE_DENIED', 'no')
  const close = () => {
    throw refusal('EIO', 'close')
  }
  const failNow = () => {
    using _ = atEndNow(close)
    throw known
  }
  const fail = async () => {
    await using _ = atEnd(close)
    failNow()
  }
  assert.throws(failNow, (error) => explainSystemError(error) === known)
  await assert.rejects(fail, (error) => explainSystemError(error) === known)
})
