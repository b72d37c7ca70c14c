import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { makeNetwork, whyNoNamespaces } from './network-namespace.js'

test('hosts know each other without a place in the table that all namespaces share', {
  skip: whyNoNamespaces(),
}, async (context) => {
  const { hosts } = await makeNetwork(context, 3)
  for (const { enter } of hosts) {
    const known = execFileSync('ip', ['-n', enter.at(-1)!, 'neigh', 'show', 'nud', 'permanent'], {
      encoding: 'utf8',
    })
    assert.equal(known.trim().split('\n').length, 3)
  }
  const [one, other] = hosts
  const hear = "require('net').createServer((s) => s.end()).listen(7000, () => console.log('hears'))"
  const [program, ...words] = [...other!.enter, process.execPath, '-e', hear]
  const hearing = spawn(program!, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  context.after(() => hearing.kill('SIGKILL'))
  await once(hearing.stdout, 'data')
  const call = `require('net').connect(7000, '${other!.address}').on('connect', () => process.exit())`
  execFileSync(one!.enter[0]!, [...one!.enter.slice(1), process.execPath, '-e', call], { timeout: 10_000 })
})
