import { Command, InvalidArgumentError, Option } from 'commander'
import type { Mode } from '../../exchange/connect-links.js'
import type { BenchRow } from '../../exchange/exchange-answer.js'
import { WIRE_TYPES } from '../../exchange/plan/wire-type.js'
import { benchExchange } from '../../exchange/run-benchmark.js'
import { atEnd } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatHostPort, type HostPort } from '../../model/host-port.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseCount, parseRate, parseWholeNumber } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { parseRendezvous } from './exchange-arguments.js'
import { openLocalRendezvous, readResult, spawnDsc } from './exchange-local.js'
import { readToken } from './exchange-serve.js'

const MIB = 1024 * 1024

type BenchSettings = BenchOptions & { readonly mode: Mode }

const declare = () =>
  new Command('bench')
    .description('time the exchange between Node processes')
    .option('--ranks <count>', 'processes', argument(parseCount), 2)
    .option('--mib <list>', 'MiB of the buckets, as fp32', argument(parseSizes), [1, 4, 25])
    .addOption(new Option('--wire <type>', 'type on the wire').choices(WIRE_TYPES).default('fp16'))
    .addOption(
      new Option('--mode <mode>', 'how ranks are connected (default: ring; direct with int8)').choices([
        'ring',
        'direct',
      ]),
    )
    .option('--levels <count>', '2: ranks of a host share its memory', parseLevels, 1)
    .option('--repeats <count>', 'steps for each size', argument(parseCount), 15)
    .option('--rendezvous <host:port>', 'join a run over several hosts', parseRendezvous)
    .option('--rank <rank>', 'with --rendezvous: this rank', argument(parseWholeNumber))
    .option('--listen-host <address>', 'with --rendezvous: address for other ranks')
    .option('--token-file <file>', 'with --rendezvous: file with its token')
    .addHelpText(
      'after',
      `
Examples:
  dsc exchange bench --ranks 2 --mib 4,25
  dsc exchange bench --ranks 4 --levels 2    through the memory of this host
  dsc exchange bench --ranks 2 --rank 0 --rendezvous gpu-1:7171 --listen-host 10.0.0.1    on one host
  dsc exchange bench --ranks 2 --rank 1 --rendezvous gpu-1:7171 --listen-host 10.0.0.2    on the other`,
    )

type BenchOptions = OptionsOf<typeof declare>

/** `dsc exchange bench`: the speed of dsc's own ring, on this machine or between hosts. */
export function exchangeBenchCommand({ report, signal }: CliContext) {
  return declare().action(async (given) => {
    const options = { ...given, mode: given.mode ?? (given.wire === 'int8' ? 'direct' : 'ring') }
    const rows = options.rendezvous ? await runRank(options, options.rendezvous) : await runHere(options)
    const { ranks, wire, mode, levels } = options
    report.result<'exchange bench'>({ ranks, wire, mode, levels, rows }, () => formatRows(rows))
  })

  async function runRank(options: BenchSettings, rendezvous: HostPort): Promise<BenchRow[]> {
    const { rank, mib, tokenFile, ...rest } = options
    if (rank === undefined) throw new DscError('USAGE', '--rendezvous needs --rank', { hint: '--rank 0' })
    const token = await readToken(tokenFile)
    const sizesBytes = mib.map((size) => size * MIB)
    return await benchExchange({ ...rest, rendezvous, token, rank, sizesBytes, signal })
  }
}

async function runHere({ ranks, mib, wire, mode, levels, repeats }: BenchSettings): Promise<BenchRow[]> {
  const rendezvous = await openLocalRendezvous()
  const at = formatHostPort(rendezvous)
  const words = ['exchange', 'bench', '--rendezvous', at, '--ranks', String(ranks), '--mib', mib.join(',')]
  const settings = ['--wire', wire, '--mode', mode, '--levels', String(levels), '--repeats', String(repeats)]
  await using _ = atEnd(() => rendezvous.close())
  const children = Array.from({ length: ranks }, (_, rank) =>
    spawnDsc([...words, ...settings, '--rank', String(rank)]),
  )
  const results = (await Promise.all(children.map(readResult))) as { readonly rows: BenchRow[] }[]
  return results[0]?.rows ?? []
}

function formatRows(rows: readonly BenchRow[]): string {
  const lines = rows.map(
    ({ messageBytes, medianMs, bytesPerSecond }) =>
      `${(messageBytes / MIB).toFixed(2).padStart(8)}${medianMs.toFixed(2).padStart(10)}${(bytesPerSecond / 1e9).toFixed(2).padStart(10)}`,
  )
  return [`${'MiB fp32'.padStart(8)}${'ms'.padStart(10)}${'GB/s'.padStart(10)}`, ...lines].join('\n')
}

function parseLevels(raw: string): 1 | 2 {
  if (raw !== '1' && raw !== '2') throw new InvalidArgumentError('expected 1 or 2.')
  return raw === '1' ? 1 : 2
}

function parseSizes(raw: string): number[] {
  return raw.split(',').map(parseRate)
}
