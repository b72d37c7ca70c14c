import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWorld } from '../testing/world.js'

for (const words of [
  ['feed', 'storage', '.', '--listen', '127.0.0.1:99999'],
  ['feed', 'serve', '--from', '127.0.0.1:7071,127.0.0.1:99999'],
  ['params', 'serve', '--mode', 'sync', '--workers', '1', '--listen', '127.0.0.1:99999'],
  ['params', 'status', '--server', 'http://127.0.0.1:99999'],
  ['exchange', 'serve', '--listen', '127.0.0.1:99999'],
  ['exchange', 'bench', '--rendezvous', '127.0.0.1:99999', '--rank', '0'],
  ['exchange', 'probe', '--hosts', '127.0.0.1,127.0.0.1:99999'],
]) {
  test(`a port above 65535 is a mistake in the arguments of ${words.slice(0, 2).join(' ')}`, async (context) => {
    const world = await makeWorld(context, {})
    const { code, stderr } = await world.dsc(...words)
    assert.equal(code, 2, stderr)
    assert.match(stderr, /expected .*found "(http:\/\/)?127\.0\.0\.1:99999"/)
    assert.doesNotMatch(stderr, /internal error/)
  })
}

test('a port above 65535 in dsc.yaml is named with its key', async (context) => {
  const world = await makeWorld(context, { agent: { listen: '127.0.0.1:99999' } })
  const { code, stderr } = await world.dsc('status')
  assert.equal(code, 3, stderr)
  assert.match(stderr, /agent\.listen.*127\.0\.0\.1:99999/s)
})

test('no two services listen on one port unless told to', async (context) => {
  const world = await makeWorld(context, {})
  const ports = await Promise.all(
    [
      ['exchange', 'serve'],
      ['params', 'serve'],
    ].map(
      async (words) =>
        /--listen .*?\(default:.*?:(\d+)\)/s.exec((await world.dsc(...words, '--help')).stdout)?.[1],
    ),
  )
  assert.deepEqual(ports, ['7171', '7272'])
})

for (const { words, code, says } of [
  { words: ['--server', 'htp:/x'], code: 2, says: /expected a URL such as .*found "htp:\/x"/ },
  { words: ['--server', 'http://'], code: 2, says: /expected a URL/ },
  { words: ['--server', 'nowhere'], code: 2, says: /expected a URL/ },
  { words: ['--server', 'http://127.0.0.1:1'], code: 11, says: /does not answer \((?!TypeError).+\)/ },
  { words: ['--token-file', 'none'], code: 2, says: /the token file none cannot be read/ },
]) {
  test(`params status ${words.join(' ')} is told without a stack`, async (context) => {
    const world = await makeWorld(context, {})
    const run = await world.dsc('params', 'status', ...words)
    assert.equal(run.code, code, run.stderr)
    assert.match(run.stderr, says)
    assert.doesNotMatch(run.stderr, /internal error|\n +at /)
  })
}
