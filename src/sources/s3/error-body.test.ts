import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readErrorBody } from './error-body.js'

for (const { name, body, shown } of [
  {
    name: 'without entities',
    body: '<Error><Code>NoSuchKey</Code><Message>a &lt;b&gt; &amp; &#39;c&#x27; is gone</Message></Error>',
    shown: { code: 'NoSuchKey', message: "a <b> & 'c' is gone" },
  },
  {
    name: 'without control characters, however they are written',
    body: '<Code>A\u001b[31mB</Code><Message>red\u001b[2J&#27;[31m\nnext\u202eleft</Message>',
    shown: { code: 'A [31mB', message: 'red [2J [31m next left' },
  },
  { name: 'as nothing where it is no XML', body: 'not XML', shown: { code: '', message: '' } },
]) {
  test(`an error answer is shown ${name}`, () => assert.deepEqual(readErrorBody(body), shown))
}
