import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { openRendezvous } from '../../exchange/rendezvous/open-rendezvous.js'
import { DSC } from '../../testing/dsc-processes.js'
import { makeNetwork, whyNoNamespaces } from '../../testing/network-namespace.js'

const run = promisify(execFile)

test('two hosts with two ranks each: with two levels a host sends two thirds of the bytes', {
  skip: whyNoNamespaces(),
}, async (context) => {
  const { hosts, relay } = await makeNetwork(context, 2)
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  context.after(() => rendezvous.close())
  const at = await relay(rendezvous.port)
  const sent: number[] = []
  for (const levels of [1, 2]) {
    const before = await countSent(hosts[0]!.enter)
    const words = ['--ranks', '4', '--mib', '4', '--repeats', '2', '--levels', String(levels), '--json']
    const ranks = hosts.flatMap((host) => [host, host])
    await Promise.all(
      ranks.map(({ enter, address }, rank) => {
        const own = [
          '--rendezvous',
          `${at.host}:${at.port}`,
          '--rank',
          String(rank),
          '--listen-host',
          address,
        ]
        const [program, ...rest] = [...enter, ...DSC, 'exchange', 'bench', ...words, ...own]
        return run(program!, rest, { timeout: 60_000 })
      }),
    )
    sent.push((await countSent(hosts[0]!.enter)) - before)
  }
  const ratio = sent[1]! / sent[0]!
  assert.ok(ratio > 0.6 && ratio < 0.72, `${sent}: ${ratio}`)
})

/** Bytes that a host has sent over its cable. */
async function countSent(enter: readonly string[]): Promise<number> {
  const [program, ...words] = [...enter, 'cat', '/sys/class/net/eth0/statistics/tx_bytes']
  return Number((await run(program!, words)).stdout)
}
