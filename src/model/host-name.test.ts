import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHostName } from './host-name.js'

test('only host names and their URLs are names', () => {
  for (const name of ['gpu-07', 'data.example', 'http://data.example', 'https://data.example:8443/'])
    assert.equal(isHostName(name), true, name)
  for (const name of ['', 'a b', 'ftp://data.example', 'https://data.example/path', '*.example', '-a'])
    assert.equal(isHostName(name), false, name)
})
