import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSigningKey, verifySignature } from './minisign.js'

// By minisign 0.11: -G -W, -S -t 'dsc 0.1.0', and the same with -l, which does not hash first.
const PUBLIC = 'RWRd7sM20RR87yIZkWopRAwMLywC/x72dAUAg7r5DHs91SjPCjw9nvsO'
const CONTENT = 'abc  dsc-linux-x64\n'
const HASHED = `untrusted comment: signature from minisign secret key
RURd7sM20RR876ImcuajN31sYPXJUYZrXpLw4DOX0prx/NKDdF/rUbqP9uc6swwkLEMPO1mcLf5q7kwWd68ICENiHZYAB7Iwjgk=
trusted comment: dsc 0.1.0
2OOQWqFDee8Z+iAE6yq7q69oBKv6gocZEkukHCxOa9XQB2wrNQX1dPsBbfF24UnLbkd2DtcRf0apPSAIbEvrBA==
`
const LEGACY = `untrusted comment: signature from minisign secret key
RWRd7sM20RR87zXyV8U7LphbEagltmiFiZThX3P4l+78UK/1JhDQxZcv/JKKuN81PDi/o9vb1VlvUWcHq8xQe3ZJYe5ToLAtZwo=
trusted comment: dsc 0.1.0
mx8Z2ph/UIu8UtzHWz3D/0aEExUWw93ljVmMQ9bowePSuoC05Qj2IdoOctdXOi6zKImTlqMPak3gSBU1AnstBA==
`

const key = parseSigningKey(PUBLIC)
const check = (content: string, signature: string, with_ = key) =>
  verifySignature(Buffer.from(content), signature, { ...with_, what: 'SHA256SUMS' })

test('signatures of minisign are verified, and their comment is given', () => {
  assert.equal(key.id, 'EF7C14D136C3EE5D') // as minisign prints it
  assert.equal(parseSigningKey(`untrusted comment: minisign public key\n${PUBLIC}\n`).id, key.id)
  assert.equal(check(CONTENT, HASHED), 'dsc 0.1.0')
  assert.equal(check(CONTENT, LEGACY), 'dsc 0.1.0')
  assert.equal(check(CONTENT, HASHED.replaceAll('\n', '\r\n')), 'dsc 0.1.0')
})

const other = parseSigningKey(`RWRd7sM20RR87yIZkWopRAwMLywC/x72dAUAg7r5DHs91SjPCjw9nvsP`)
const [, line = '', , last = ''] = HASHED.split('\n')
for (const { name, content = CONTENT, signature = HASHED, by = key } of [
  { name: 'other content', content: `${CONTENT} ` },
  { name: 'other content, signed without a hash', content: `${CONTENT} `, signature: LEGACY },
  { name: 'another comment', signature: HASHED.replace('dsc 0.1.0', 'dsc 9.9.9') },
  { name: 'another key with the same id', by: other },
  { name: 'a key with another id', by: { ...key, id: '0000000000000000' } },
  { name: 'a signature that is cut off', signature: HASHED.slice(0, -40) },
  { name: 'no comment', signature: `untrusted comment: x\n${line}\n\n${last}\n` },
  { name: 'an empty file', signature: '' },
  { name: 'hashed content called unhashed', signature: HASHED.replace('\nRUR', '\nRWR') },
]) {
  test(`a signature is refused: ${name}`, () => {
    assert.throws(() => check(content, signature, by), { code: 'SIGNATURE_INVALID' })
  })
}

test('a public key is one of minisign', () => {
  for (const text of ['', 'RWRd7sM20RR8', Buffer.alloc(42).toString('base64')])
    assert.throws(() => parseSigningKey(text), RangeError)
})
