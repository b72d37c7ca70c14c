import { Command, Option } from 'commander'
import type { UnitPlan } from '../../exchange/exchange-answer.js'
import { chooseLevels } from '../../exchange/plan/choose-levels.js'
import { chooseWire, wireLink } from '../../exchange/plan/choose-wire.js'
import { planExchange } from '../../exchange/plan/plan-exchange.js'
import { planUnits } from '../../exchange/plan/plan-units.js'
import { findThinLink } from '../../exchange/plan/thin-link.js'
import type { JoinedProfile } from '../../exchange/plan/unlike-ranks.js'
import { meanBytes, tensorBytes, WIRE_TYPES } from '../../exchange/plan/wire-type.js'
import {
  describePlan,
  type MeasuredLink,
  readLink,
  readModel,
  readProfiles,
} from '../../exchange/plan-files.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseCount, parseRate } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { requireOwnFile, writeResult } from '../output/require-own-file.js'

const declare = () =>
  new Command('plan')
    .description('choose buckets and type, and compare alternatives')
    .requiredOption('--ranks <count>', 'number of ranks', argument(parseCount))
    .option('--ranks-per-host <count>', 'ranks on each host', argument(parseCount), 1)
    .option('--profile <file...>', 'profile by dsc.exchange.Profiler; one for each kind of rank')
    .option('--model <file>', 'tensor list of a model, instead of --profile')
    .option(
      '--backward-ms <list>',
      'with --model: time of a backward pass, for each kind of rank',
      argument(parseTimes),
    )
    .option('--link <file>', 'link measured by `dsc exchange probe`')
    .option(
      '--alpha-us <us>',
      'instead of --link: latency of a message, in microseconds',
      argument(parseRate),
    )
    .option('--gigabits <rate>', 'instead of --link: bandwidth in Gb/s', argument(parseRate))
    .addOption(
      new Option('--wire <type>', 'type on the wire').choices(['auto', ...WIRE_TYPES]).default('auto'),
    )
    .option('--optimum', 'use the exact optimum; only as good as the profile')
    .option('--sharded', 'also plan the units of FSDP2 (fully_shard)')
    .option('--out <file>', 'write the plan here')
    .addHelpText(
      'after',
      `
Examples:
  dsc exchange plan --profile profile.json --link link.json --ranks 8 --out exchange.plan.json
  dsc exchange plan --profile a100.json l4.json --link link.json --ranks 8    two kinds of GPU
  dsc exchange plan --profile profile.json --link link.json --ranks 8 --ranks-per-host 4
  dsc exchange plan --model fixtures/exchange/resnet-152.json --backward-ms 200 --alpha-us 30 --gigabits 10 --ranks 8`,
    )

type PlanOptions = OptionsOf<typeof declare>

/** `dsc exchange plan`: threshold, buckets, the exposed time of the alternatives, and arguments for DDP. */
export function exchangePlanCommand({ report }: CliContext) {
  return declare().action(async (options) => {
    const profile = await openProfile(options)
    await requireOwnFile(options.out, 'dsc.exchange.plan')
    const link = await openLink(options)
    const { ranks, ranksPerHost } = options
    if (ranks % ranksPerHost !== 0)
      throw new DscError('USAGE', `${ranks} ranks are not ${ranksPerHost} on every host`, {
        hint: `--ranks ${ranksPerHost * Math.ceil(ranks / ranksPerHost)}, or --ranks-per-host 1`,
      })
    const levels = chooseLevels({ ...profile, ranks, link }, ranksPerHost)
    const job = { ...profile, ranks: levels.networkRanks, link }
    const thinLink = findThinLink(job)
    const placement = { ranksPerHost, levels: levels.levels }
    const choice =
      options.wire === 'auto'
        ? chooseWire(job, link, placement)
        : { wire: options.wire, explanation: `${options.wire}, as asked.` }
    const { wire } = choice
    const wireBytes = meanBytes(wire, job.gradients)
    const plan = planExchange({
      ...job,
      link: wireLink({ ...job, exchanges: link.exchanges }, wire, placement),
      wireBytes,
      useOptimum: options.optimum === true,
    })
    const units = options.sharded
      ? planUnits({
          gradients: job.gradients,
          ranks,
          link,
          parameterBytes: job.gradientBytes,
          gradientWireBytes: wireBytes,
        })
      : undefined
    const description = describePlan(profile, plan, { ranks, choice, link, levels, thinLink, units })
    if (options.out) await writeResult(options.out, description)
    report.result<'exchange plan'>({ ...description, ddp: { ...description.ddp } }, () =>
      formatPlan(description),
    )
  })
}

async function openProfile({ profile, model, backwardMs }: PlanOptions): Promise<JoinedProfile> {
  if (profile) return await readProfiles(profile)
  if (model && backwardMs) {
    return await readModel(
      model,
      backwardMs.map((ms) => ms / 1000),
    )
  }
  throw new DscError(
    'USAGE',
    'nothing to plan for: neither --profile nor --model with --backward-ms is given',
    { hint: 'dsc exchange plan --help' },
  )
}

async function openLink({ link, alphaUs, gigabits }: PlanOptions): Promise<MeasuredLink> {
  if (link) return await readLink(link)
  if (alphaUs !== undefined && gigabits) {
    return { alphaSeconds: alphaUs / 1e6, bandwidthBytesPerSecond: (gigabits * 1e9) / 8 }
  }
  throw new DscError('USAGE', 'the link is unknown: neither --link nor --alpha-us with --gigabits is given', {
    hint: 'dsc exchange probe --out link.json',
  })
}

function parseTimes(raw: string): number[] {
  return raw.split(',').map(parseRate)
}

function formatPython(value: number | readonly number[] | true): string {
  return value === true ? 'True' : JSON.stringify(value)
}

function formatPlan(plan: ReturnType<typeof describePlan>): string {
  const { threshold, alternatives, buckets, ddp, link } = plan
  const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(2)
  const sizes = buckets.map(({ tensors }) =>
    mib(tensors.reduce((sum, { elements }) => sum + tensorBytes(plan.wire, elements), 0)),
  )
  const shown = sizes.length > 12 ? [...sizes.slice(0, 10), '…', sizes.at(-1)] : sizes
  const rows = alternatives.map(
    ({ name, calls, exposedMs }) =>
      `  ${name.padEnd(26)}${String(calls).padStart(6)}${exposedMs.toFixed(1).padStart(14)}`,
  )
  const args = Object.entries(ddp).map(([name, value]) => `, ${name}=${formatPython(value)}`)
  const gigabits = ((link.bandwidthBytesPerSecond * 8) / 1e9).toFixed(2)
  const asked =
    plan.ranks === 1
      ? 'no threshold'
      : `threshold ${mib(threshold.wireBytes)} MiB on the wire (${threshold.layers.toFixed(1)} layers)`
  return [
    `${plan.model}, ${formatCount(plan.ranks, 'rank')}, ${plan.wire} on the wire, α ${link.alphaMicroseconds.toFixed(0)} µs, ${gigabits} Gb/s`,
    plan.wireExplanation,
    plan.levelsExplanation ?? [],
    plan.thinLink?.explanation ?? [],
    plan.unlikeRanks ?? [],
    asked,
    threshold.explanation,
    plan.bucketRule === 'DDP'
      ? "DDP's own buckets are predicted to end earlier than the threshold's, so they stay."
      : [],
    '',
    `  ${'way'.padEnd(26)}${'calls'.padStart(6)}${'exposed ms'.padStart(14)}`,
    ...rows,
    '',
    `buckets, MiB on the wire (${sizes.length}): ${shown.join(' ')}`,
    `DistributedDataParallel(model${args.join('')})`,
    plan.sharded ? formatUnits(plan.sharded) : [],
  ]
    .flat()
    .join('\n')
}

function formatUnits({ units, chosen, alternatives }: UnitPlan): string[] {
  const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(0)
  const rows = alternatives.map(
    ({ name, units: count, prefetch, stepMs, exposedMs, gatheredBytes }) =>
      `  ${name.padEnd(16)}${String(count).padStart(6)}${String(prefetch).padStart(10)}${stepMs.toFixed(1).padStart(11)}${exposedMs.toFixed(1).padStart(13)}${mib(gatheredBytes).padStart(15)}`,
  )
  const shown = units
    .slice(0, 6)
    .map(({ modules }) => `[${modules.map((name) => name || 'the model').join(', ')}]`)
  return [
    '',
    `FSDP2: ${chosen.name} per unit, ${chosen.prefetch} gathered ahead; a step is predicted to take ${chosen.stepMs.toFixed(1)} ms`,
    `  ${'unit'.padEnd(16)}${'units'.padStart(6)}${'ahead'.padStart(10)}${'step ms'.padStart(11)}${'exposed ms'.padStart(13)}${'gathered MiB'.padStart(15)}`,
    ...rows,
    `fully_shard() of each of: ${shown.join(' ')}${units.length > 6 ? ` and ${units.length - 6} more (--json)` : ''}, then of the model`,
  ]
}
