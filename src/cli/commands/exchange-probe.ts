import { Command } from 'commander'
import { fitLink, median } from '../../exchange/plan/fit-link.js'
import { probeLink } from '../../exchange/probe.js'
import { formatHostPort, type HostPort } from '../../model/host-port.js'
import type { CliContext } from '../context.js'
import { requireOwnFile, writeResult } from '../output/require-own-file.js'
import { parseRendezvous } from './exchange-arguments.js'
import { openLocalRendezvous } from './exchange-local.js'
import { readToken } from './exchange-serve.js'

/** `dsc exchange probe`: latency and bandwidth from here to other hosts, for `dsc exchange plan`. */
export function exchangeProbeCommand({ report }: CliContext) {
  return new Command('probe')
    .description('measure latency and bandwidth between ranks')
    .option('--hosts <list>', 'hosts that run `dsc exchange serve` (default: this host)', parseRendezvousList)
    .option('--token-file <file>', 'file with their token')
    .option('--out <file>', 'write the link here')
    .addHelpText(
      'after',
      `
Examples:
  dsc exchange probe --hosts gpu-1,gpu-2 --token-file token --out link.json
  dsc exchange probe                      loopback of this machine`,
    )
    .action(async ({ hosts, tokenFile, out }) => {
      await requireOwnFile(out, 'dsc.exchange.link')
      const token = await readToken(tokenFile)
      const local = hosts ? undefined : await openLocalRendezvous()
      const links: Awaited<ReturnType<typeof measure>>[] = []
      try {
        for (const at of hosts ?? (local ? [local] : [])) links.push(await measure(at))
      } finally {
        await local?.close()
      }
      // A ring is as fast as its slowest link.
      const description = {
        format: 'dsc.exchange.link/1' as const,
        alphaMicroseconds: Math.max(...links.map((link) => link.alphaMicroseconds)),
        bandwidthBytesPerSecond: Math.min(...links.map((link) => link.bandwidthBytesPerSecond)),
        hosts: links,
      }
      if (out) await writeResult(out, description)
      report.progress(undefined)
      report.result<'exchange probe'>({ ...description }, () =>
        links
          .map(({ host, alphaMicroseconds, bandwidthBytesPerSecond, sizes }) =>
            [
              `${host}: α ${alphaMicroseconds.toFixed(1)} µs, ${((bandwidthBytesPerSecond * 8) / 1e9).toFixed(2)} Gb/s`,
              ...sizes.map(
                ({ messageBytes, medianMicroseconds }) =>
                  `  ${String(messageBytes).padStart(9)} bytes ${medianMicroseconds.toFixed(1).padStart(10)} µs`,
              ),
            ].join('\n'),
          )
          .join('\n'),
      )

      async function measure(at: HostPort) {
        const host = formatHostPort(at)
        const probes = await probeLink(at, {
          token,
          onSize: (bytes) => report.progress(`probing ${host}: messages of ${bytes} bytes`),
        })
        const { alphaSeconds, bandwidthBytesPerSecond } = fitLink(probes)
        return {
          host,
          alphaMicroseconds: alphaSeconds * 1e6,
          bandwidthBytesPerSecond,
          sizes: probes.map(({ bytes, seconds }) => ({
            messageBytes: bytes,
            medianMicroseconds: median(seconds) * 1e6,
          })),
        }
      }
    })
}

function parseRendezvousList(raw: string): readonly HostPort[] {
  return raw.split(',').map((host) => parseRendezvous(host.trim()))
}
