import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findProxy } from './find-proxy.js'

const HTTPS = 'https://bucket.s3.eu-west-1.amazonaws.com'
const HTTP = 'http://minio.lab.example:9000'

for (const { name, origin, environment, url } of [
  { name: 'nothing set', origin: HTTPS, environment: {}, url: undefined },
  {
    name: 'by the scheme',
    origin: HTTPS,
    environment: { HTTPS_PROXY: 'http://p:3128', HTTP_PROXY: 'http://q' },
    url: 'http://p:3128',
  },
  {
    name: 'by the other scheme',
    origin: HTTP,
    environment: { HTTPS_PROXY: 'http://p:3128', HTTP_PROXY: 'http://q' },
    url: 'http://q:80',
  },
  {
    name: 'lower case first',
    origin: HTTPS,
    environment: { https_proxy: 'p:1', HTTPS_PROXY: 'p:2' },
    url: 'http://p:1',
  },
  { name: 'for all', origin: HTTP, environment: { ALL_PROXY: 'https://p' }, url: 'https://p:443' },
  {
    name: 'an empty variable sets no proxy',
    origin: HTTPS,
    environment: { HTTPS_PROXY: ' ' },
    url: undefined,
  },
  ...[
    '*',
    'example',
    '.lab.example',
    'lab.example:9000',
    'minio.lab.example',
    'a, *.example ,b',
    'MINIO.lab.example',
  ].map((NO_PROXY) => ({
    name: `not for ${NO_PROXY}`,
    origin: HTTP,
    environment: { HTTP_PROXY: 'p', NO_PROXY },
    url: undefined,
  })),
  ...['ab.example', 'o.lab.example', 'lab.example:80', '10.0.0.0/8', ''].map((NO_PROXY) => ({
    name: `although there is ${NO_PROXY || 'an empty list'}`,
    origin: HTTP,
    environment: { HTTP_PROXY: 'p', NO_PROXY },
    url: 'http://p:80',
  })),
  ...[
    ['http://10.1.2.3:9000', '10.0.0.0/8'],
    ['http://10.1.2.3:9000', '10.1.2.3'],
    ['http://[fd00::1]:9000', 'fd00::/8'],
    ['http://[fd00::1]:9000', 'fd00::1'],
    ['http://[fd00::1]:9000', '[fd00::1]:9000'],
  ].map(([origin, NO_PROXY]) => ({
    name: `not for ${NO_PROXY}`,
    origin: origin!,
    environment: { HTTP_PROXY: 'p', NO_PROXY: NO_PROXY! },
    url: undefined,
  })),
])
  test(`findProxy: ${name}, ${origin}`, () => {
    assert.equal(findProxy(origin, environment as Record<string, string>)?.url, url)
  })

test('findProxy keeps the password for the proxy alone', () => {
  const proxy = findProxy(HTTPS, { HTTPS_PROXY: 'http://me:s%40crt@p:3128' })
  assert.equal(proxy?.authorization, `Basic ${Buffer.from('me:s@crt').toString('base64')}`)
  assert.equal(proxy?.url, 'http://p:3128')
})

test('a proxy that cannot be used is refused without its password', () => {
  assert.throws(() => findProxy(HTTPS, { HTTPS_PROXY: 'socks5://me:secret@p:1080' }), {
    code: 'CONFIG_INVALID',
    message: /^((?!secret).)*HTTPS_PROXY((?!secret).)*$/,
  })
})
