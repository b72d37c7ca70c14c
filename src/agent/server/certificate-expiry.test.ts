import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeCertificate } from '../../testing/certificate.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { describeExpiry, readExpiryMs } from './certificate-expiry.js'

const DAY_MS = 86_400_000
const NOW_MS = Date.parse('2026-05-01T00:00:00Z')

for (const { leftMs, says } of [
  { leftMs: 15 * DAY_MS, says: undefined },
  { leftMs: 14 * DAY_MS, says: 'its certificate expires in 14d, on 2026-05-15T00:00:00Z' },
  { leftMs: 90 * 60_000, says: 'its certificate expires in 1h30m, on 2026-05-01T01:30:00Z' },
  {
    leftMs: -2 * DAY_MS,
    says: 'its certificate expired 2d ago, on 2026-04-29T00:00:00Z: nobody takes from it',
  },
]) {
  test(`a certificate that has ${leftMs / DAY_MS} days left: ${says ?? 'nothing is said'}`, () => {
    assert.equal(describeExpiry(NOW_MS + leftMs, NOW_MS), says)
  })
}

test('the certificate of a chain that ends first counts', async (context) => {
  const [long, short] = [await temporaryDirectory(context), await temporaryDirectory(context)]
  const days = (folder: string, count: number) =>
    readFileSync(makeCertificate(folder, { days: count }).certFile, 'utf8')
  const leftDays = (readExpiryMs(days(long, 30) + days(short, 3)) - Date.now()) / DAY_MS
  assert.ok(leftDays > 2.9 && leftDays <= 3, `${leftDays} days`)
  assert.throws(() => readExpiryMs('a key, perhaps'), /holds no certificate/)
})
