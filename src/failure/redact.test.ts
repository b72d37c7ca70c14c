import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactText, redactUrl } from './redact.js'

for (const [url, shown] of [
  ['postgres://u:CANARY@h/db?x=1', 'postgres://h/db'],
  ['postgres://u:CAN/ARY@h/db', 'postgres://h/db'],
  ['postgres://u:12/CANARY@h/db', 'postgres://h/db'],
  ['postgres://u:CANARY@h1:1,h2:2/db', 'postgres://h1:1,h2:2/db'],
  ['postgres://u:CAN@ARY@h/db?password=CANARY', 'postgres://h/db'],
  ['https://h/x?X-Amz-Signature=CANARY', 'https://h/x'],
  ['s3://bucket/a@b/', 's3://bucket/a@b/'],
  ['/var/lib/dsc/record.db', '/var/lib/dsc/record.db'],
] as const) {
  test(`redactUrl shows ${url} as ${shown}`, () => assert.equal(redactUrl(url), shown))
}

for (const [text, shown] of [
  ['cannot use postgres://u:CAN/ARY@h1,h2/db: no', 'cannot use postgres://h1,h2/db: no'],
  [
    'GET http://h:9000/a?X-Amz-Credential=CANARY&part=1 failed',
    'GET http://h:9000/a?X-Amz-Credential=***&part=1 failed',
  ],
  ['expected postgres://user@host/database', 'expected postgres://user@host/database'],
  [
    'unable to verify the first certificate; if the root CA is installed locally, try running Node.js with --use-system-ca (X)',
    'unable to verify the first certificate (X)',
  ],
  ['s3://bucket/a@b is empty', 's3://bucket/a@b is empty'],
] as const) {
  test(`redactText shows ${text}`, () => assert.equal(redactText(text), shown))
}
