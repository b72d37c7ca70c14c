import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { needsRoot } from '../testing/needs.js'
import { findSocketOwner } from './socket-owner.js'

async function accept(t: TestContext, host: string, begin: (port: number) => void): Promise<Socket> {
  const server = createServer()
  server.listen(0, host)
  await once(server, 'listening')
  t.after(() => server.close())
  const accepted = once(server, 'connection')
  begin((server.address() as AddressInfo).port)
  const [socket] = (await accepted) as [Socket]
  t.after(() => socket.destroy())
  return socket
}

const ownerOf = (socket: Socket) =>
  findSocketOwner(
    { address: socket.remoteAddress!, port: socket.remotePort! },
    { address: socket.localAddress!, port: socket.localPort! },
  )

for (const [listening, dialled] of [
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '::1'],
  ['::', '127.0.0.1'],
] as const)
  test(`findSocketOwner knows who dialled ${dialled} of ${listening}`, async (t) => {
    const socket = await accept(t, listening, (port) => {
      const client = connect(port, dialled)
      t.after(() => client.destroy())
    })
    assert.equal(await ownerOf(socket), process.getuid!())
    const stranger = { address: socket.localAddress!, port: socket.localPort! }
    assert.equal(await findSocketOwner({ address: '127.0.0.9', port: 9 }, stranger), undefined)
  })

test('findSocketOwner tells another user apart', { skip: needsRoot }, async (t) => {
  const socket = await accept(t, '127.0.0.1', (port) => {
    // It changes its user after starting: others may lack access to this checkout.
    const code = `process.setuid(65_534); require('node:net').connect(${port}, '127.0.0.1')`
    const child = spawn(process.execPath, ['-e', code], { stdio: 'ignore' })
    t.after(() => child.kill())
  })
  assert.equal(await ownerOf(socket), 65_534)
})

test('findSocketOwner takes an end that its process has closed for nobody’s', async (t) => {
  const dialled: Socket[] = []
  const socket = await accept(t, '127.0.0.1', (port) => dialled.push(connect(port, '127.0.0.1')))
  const [client] = dialled
  assert.equal(await ownerOf(socket), process.getuid!())
  client!.destroy()
  await once(client!, 'close')
  assert.equal(await ownerOf(socket), undefined)
})

test('findSocketOwner finds a client whose socket is for both families, as those of Java are', async (t) => {
  const socket = await accept(t, '127.0.0.1', (port) => {
    const client = connect(port, '::ffff:127.0.0.1')
    t.after(() => client.destroy())
  })
  assert.equal(socket.remoteAddress, '127.0.0.1', 'the server has a socket for IPv4')
  assert.equal(await ownerOf(socket), process.getuid!())
})
