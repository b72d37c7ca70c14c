import { Command, InvalidArgumentError, Option } from 'commander'
import type { Mode } from '../../exchange/connect-links.js'
import { WIRE_TYPES, type WireType } from '../../exchange/plan/wire-type.js'
import { type BenchRow, benchExchange } from '../../exchange/run-benchmark.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatHostPort, type HostPort } from '../../model/host-port.js'
import type { ExchangeBenchAnswer } from '../answers/exchange-answers.js'
import type { CliContext } from '../context.js'
import { parseNumber, parseRendezvous } from './exchange-arguments.js'
import { openLocalRendezvous, readResult, spawnDsc } from './exchange-local.js'
import { readToken } from './exchange-serve.js'

const MIB = 1024 * 1024

interface BenchOptions {
  readonly ranks: number
  readonly rank?: number
  readonly rendezvous?: HostPort
  readonly listenHost?: string
  readonly tokenFile?: string
  readonly mib: readonly number[]
  readonly wire: WireType
  readonly mode?: Mode
  readonly levels: 1 | 2
  readonly repeats: number
}

type BenchSettings = BenchOptions & { readonly mode: Mode }

/** `dsc exchange bench`: the speed of dsc's own ring, on this machine or between hosts. */
export function exchangeBenchCommand({ report, signal }: CliContext): Command {
  return new Command('bench')
    .description('time the exchange between Node processes')
    .option('--ranks <count>', 'processes', parseNumber(1, 'integer'), 2)
    .option('--mib <list>', 'MiB of the buckets, as fp32', parseSizes, [1, 4, 25])
    .addOption(new Option('--wire <type>', 'type on the wire').choices(WIRE_TYPES).default('fp16'))
    .addOption(
      new Option('--mode <mode>', 'how ranks are connected (default: ring; direct with int8)').choices([
        'ring',
        'direct',
      ]),
    )
    .option('--levels <count>', '2: ranks of a host share its memory', parseLevels, 1)
    .option('--repeats <count>', 'steps for each size', parseNumber(1, 'integer'), 15)
    .option('--rendezvous <host:port>', 'join a run over several hosts', parseRendezvous)
    .option('--rank <rank>', 'with --rendezvous: this rank', parseNumber(0, 'integer'))
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
    .action(async (given: BenchOptions) => {
      const options = { ...given, mode: given.mode ?? (given.wire === 'int8' ? 'direct' : 'ring') }
      const rows = options.rendezvous ? await runRank(options, options.rendezvous) : await runHere(options)
      const { ranks, wire, mode, levels } = options
      const answer: ExchangeBenchAnswer = { dsc: 1, ranks, wire, mode, levels, rows }
      report.result(answer, () => formatRows(rows))
    })

  async function runRank(options: BenchSettings, rendezvous: HostPort): Promise<BenchRow[]> {
    const { rank, ranks, wire, mode, levels, repeats, listenHost } = options
    if (rank === undefined) throw new DscError('USAGE', '--rendezvous needs --rank', { hint: '--rank 0' })
    const token = await readToken(options.tokenFile)
    const sizesBytes = options.mib.map((mib) => mib * MIB)
    return await benchExchange({
      rendezvous,
      token,
      listenHost,
      ranks,
      rank,
      sizesBytes,
      wire,
      mode,
      levels,
      repeats,
      signal,
    })
  }
}

async function runHere({ ranks, mib, wire, mode, levels, repeats }: BenchSettings): Promise<BenchRow[]> {
  const rendezvous = await openLocalRendezvous()
  const at = formatHostPort(rendezvous)
  const words = ['exchange', 'bench', '--rendezvous', at, '--ranks', String(ranks), '--mib', mib.join(',')]
  const settings = ['--wire', wire, '--mode', mode, '--levels', String(levels), '--repeats', String(repeats)]
  try {
    const children = Array.from({ length: ranks }, (_, rank) =>
      spawnDsc([...words, ...settings, '--rank', String(rank)]),
    )
    const results = (await Promise.all(children.map(readResult))) as { readonly rows: BenchRow[] }[]
    return results[0]?.rows ?? []
  } finally {
    await rendezvous.close()
  }
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
  return raw.split(',').map(parseNumber(0))
}
