import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { claimOf, findFreePort } from './free-port.js'

test('a free port stays claimed for this process, whose server may not have started yet', async () => {
  const port = await findFreePort()
  const claim = `require('net').createServer().listen(${JSON.stringify(claimOf(port))}).on('error', (error) => process.exit(error.code === 'EADDRINUSE' ? 3 : 1)).on('listening', () => process.exit())`
  assert.equal(spawnSync(process.execPath, ['-e', claim]).status, 3)
})
