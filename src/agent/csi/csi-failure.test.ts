import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DscError } from '../../failure/dsc-error.js'
import { CsiRefusal, describeCsiFailure } from './csi-failure.js'

for (const [error, status, message] of [
  [
    new DscError('QUOTA_EXCEEDED', 'no room for a\n  held: b 1 GiB, leased by pod:x/y', {
      hint: 'dsc status',
    }),
    'RESOURCE_EXHAUSTED',
    'no room for a; held: b 1 GiB, leased by pod:x/y; try: dsc status',
  ],
  [new DscError('DATASET_UNKNOWN', 'no dataset is called "a"'), 'NOT_FOUND', 'no dataset is called "a"'],
  [new DscError('USAGE', 'x'), 'INVALID_ARGUMENT', 'x'],
  [new DscError('SOURCE_UNREACHABLE', 'x'), 'UNAVAILABLE', 'x'],
  [new DscError('RECORD_UNAVAILABLE', 'x'), 'UNAVAILABLE', 'x'],
  [new DscError('SOURCE_DENIED', 'x'), 'PERMISSION_DENIED', 'x'],
  [new DscError('CACHE_ROOT_INVALID', 'x'), 'INTERNAL', 'x'],
  [new DscError('CONFIG_INVALID', 'x'), 'INTERNAL', 'x'],
  [new DscError('IO_FAILED', 'x'), 'INTERNAL', 'x'],
  [new DscError('SYSTEM_LIMIT', 'x'), 'RESOURCE_EXHAUSTED', 'x'],
  [
    Object.assign(new Error('ENOSPC: write'), { code: 'ENOSPC', syscall: 'write', path: '/a' }),
    'RESOURCE_EXHAUSTED',
    '/a: no space or no inodes left (ENOSPC: write); try: dsc evict --free 10GiB, or free space otherwise; then run the same command again',
  ],
  [
    Object.assign(new Error('EBUSY: rmdir'), { code: 'EBUSY', syscall: 'rmdir', path: '/a' }),
    'INTERNAL',
    '/a: this machine refuses it (EBUSY: rmdir); try: dsc --debug shows where; check the path and its permissions',
  ],
  [new CsiRefusal('ABORTED', 'x\n  y'), 'ABORTED', 'x; y'],
  [
    new DscError('SOURCE_DENIED', 'https://data.example/x.tar?X-Amz-Signature=abc'),
    'PERMISSION_DENIED',
    'https://data.example/x.tar?X-Amz-Signature=***',
  ],
  [new TypeError('x'), 'INTERNAL', 'a defect of dsc: x'],
] as const)
  test(`kubelet is told ${status} of ${error.name} ${error instanceof DscError ? error.code : ''}`, () => {
    assert.deepEqual(describeCsiFailure(error), { status, message })
  })

test('kubelet is told at most 850 bytes, in whole characters', () => {
  for (const error of [
    new DscError('QUOTA_EXCEEDED', 'x'.repeat(2000)),
    new DscError('QUOTA_EXCEEDED', 'é😀'.repeat(2000)),
    new CsiRefusal('ABORTED', 'x'.repeat(2000)),
    new TypeError('x'.repeat(2000)),
  ]) {
    const { message } = describeCsiFailure(error)
    const bytes = Buffer.byteLength(message)
    assert.ok(bytes > 846 && bytes <= 850, `${bytes} bytes`)
    assert.match(message, /^[^\uFFFD]*…$/)
  }
})
