import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatError } from './s3-documents.js'
import { S3Error } from './s3-request.js'

test('an error that names a key with control characters is a document that XML has', () => {
  const error = new S3Error({ code: 'NoSuchKey', status: 404 }, 'a\0b\u0001c\uFFFFd <ü>')
  assert.match(
    formatError(error, '/bucket/a%00b', '1'),
    /<Message>a\uFFFDb\uFFFDc\uFFFDd &lt;ü&gt;<\/Message>/,
  )
})
