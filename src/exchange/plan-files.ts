import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { count, milliseconds } from '../answers/fields.js'
import { DscError } from '../failure/dsc-error.js'
import type { ThinLink, UnitPlan } from './exchange-answer.js'
import type { LevelChoice } from './plan/choose-levels.js'
import type { ConversionRates, WireChoice } from './plan/choose-wire.js'
import type { Link } from './plan/cost-model.js'
import { gradientsOfModel } from './plan/gradient.js'
import type { ExchangePlan } from './plan/plan-exchange.js'
import { explainUnlikeRanks, type JoinedProfile, joinProfiles, type Profile } from './plan/unlike-ranks.js'
import { WIRE_TYPES, type WireType } from './plan/wire-type.js'

const positive = z.number().positive()

const profileSchema = z.object({
  format: z.literal('dsc.exchange.profile/1'),
  model: z.string(),
  backwardMs: positive,
  gradientBytes: positive.default(4),
  gradients: z
    .array(z.object({ name: z.string(), elements: count, layer: count, readyMs: milliseconds }))
    .min(1),
})
const modelSchema = z.object({
  format: z.literal('dsc.exchange.model/1'),
  model: z.string(),
  layers: z
    .array(
      z.object({
        name: z.string(),
        flops: positive,
        activations: positive,
        tensors: z.array(z.object({ name: z.string(), shape: z.array(count) })),
      }),
    )
    .min(1),
})
const exchangeSchema = z.object({ callSeconds: z.number().nonnegative(), secondsPerValue: positive })
const linkSchema = z.object({
  format: z.literal('dsc.exchange.link/1'),
  alphaMicroseconds: z.number().nonnegative(),
  bandwidthBytesPerSecond: positive,
  halfValuesPerSecond: positive.optional(),
  int8ValuesPerSecond: positive.optional(),
  exchanges: z.object({ ranks: z.int().min(2), fp16: exchangeSchema, int8: exchangeSchema }).optional(),
})
const planSchema = z.object({
  format: z.literal('dsc.exchange.plan/1'),
  hash: z.string(),
  ranks: z.int().positive(),
  wire: z.enum(WIRE_TYPES),
  levels: z.literal([1, 2]).default(1),
  buckets: z.array(z.object({ tensors: z.array(z.object({ name: z.string(), elements: count })) })).min(1),
})

/** The part of a plan file that the engine needs. */
export interface PlanFile {
  /** Ranks with different hashes refuse to exchange. */
  readonly hash: string
  readonly ranks: number
  readonly wire: WireType
  /** 2: ranks of a host sum through its memory, and one of them is on the network. Default 1. */
  readonly levels?: 1 | 2 | undefined
  readonly buckets: readonly {
    readonly tensors: readonly { readonly name: string; readonly elements: number }[]
  }[]
}

/** Reads a profile written by the PyTorch client; sorts it into backward order. */
async function readProfile(path: string): Promise<Profile> {
  const { model, backwardMs, gradientBytes, gradients } = await readJson(path, profileSchema)
  return {
    model,
    backwardSeconds: backwardMs / 1000,
    gradientBytes,
    gradients: gradients
      .map(({ readyMs, ...gradient }) => ({ ...gradient, readySeconds: readyMs / 1000 }))
      .sort((a, b) => a.readySeconds - b.readySeconds),
  }
}

/** Reads the profiles of ranks of different speed, one of each kind, and joins them. */
export async function readProfiles(paths: readonly string[]): Promise<JoinedProfile> {
  const joined = joinProfiles(await Promise.all(paths.map(readProfile)))
  if (!('mismatch' in joined)) return joined
  throw new DscError('USAGE', `${paths.join(' and ')} are not of one model: ${joined.mismatch}`, {
    hint: HINT,
  })
}

/** Reads a model's tensor list and models its backward pass, for ranks of one speed or of several. */
export async function readModel(path: string, kindSeconds: readonly number[]): Promise<JoinedProfile> {
  const { model, layers } = await readJson(path, modelSchema)
  const backwardSeconds = Math.max(...kindSeconds)
  const gradients = gradientsOfModel(layers, backwardSeconds)
  return { model, backwardSeconds, kindSeconds, gradientBytes: 4, gradients }
}

/** A link, and the cost of conversion on the ranks at its ends. */
export interface MeasuredLink extends Link, ConversionRates {}

/** Reads the output of `dsc exchange probe` or `dsc.exchange.probe_link`. */
export async function readLink(path: string): Promise<MeasuredLink> {
  const { alphaMicroseconds, ...rest } = await readJson(path, linkSchema)
  return { alphaSeconds: alphaMicroseconds / 1e6, ...rest }
}

/** Reads the output of `dsc exchange plan`. */
export async function readPlan(path: string): Promise<PlanFile> {
  return await readJson(path, planSchema)
}

/** The form of a plan in files and in the output of --json. Same input, same bytes. */
export function describePlan(
  profile: JoinedProfile,
  plan: ExchangePlan,
  options: {
    readonly ranks: number
    readonly choice: Pick<WireChoice, 'wire' | 'explanation'>
    readonly link: Link
    readonly levels: LevelChoice
    readonly thinLink?: ThinLink | undefined
    readonly units?: UnitPlan | undefined
  },
) {
  const buckets = plan.buckets.map(({ from, to }) => ({
    tensors: profile.gradients.slice(from, to).map(({ name, elements }) => ({ name, elements })),
  }))
  const { ranks, choice, link, levels, thinLink, units } = options
  const { wire, explanation: wireExplanation } = choice
  return {
    format: 'dsc.exchange.plan/1' as const,
    hash: createHash('sha256').update(JSON.stringify({ ranks, wire, buckets })).digest('hex').slice(0, 16),
    model: profile.model,
    ranks,
    wire,
    wireExplanation,
    levels: levels.levels,
    levelsExplanation: levels.explanation ?? null,
    thinLink: thinLink ?? null,
    sharded: units ?? null,
    backwardMs: profile.kindSeconds.map((seconds) => seconds * 1000),
    unlikeRanks: explainUnlikeRanks(profile.kindSeconds) ?? null,
    bucketRule: plan.rule,
    link: {
      alphaMicroseconds: link.alphaSeconds * 1e6,
      bandwidthBytesPerSecond: link.bandwidthBytesPerSecond,
    },
    threshold: {
      wireBytes: Math.round(plan.threshold.bytes),
      layers: plan.threshold.layers,
      rule: plan.threshold.rule,
      explanation: plan.threshold.explanation,
    },
    ddp: plan.ddp,
    alternatives: plan.alternatives.map(({ name, calls, exposedSeconds, finishSeconds }) => ({
      name,
      calls,
      exposedMs: exposedSeconds * 1000,
      finishMs: finishSeconds * 1000,
    })),
    buckets,
  }
}

const HINT = 'dsc exchange plan --help shows which command writes which file'

async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T> {
  let raw: unknown
  try {
    raw = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? 'is not JSON' : 'cannot be read'
    throw new DscError('USAGE', `${path} ${reason}: ${(cause as Error).message}`, { cause, hint: HINT })
  }
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new DscError('USAGE', `${path}: ${issue?.path.join('.') || 'file'}: ${issue?.message}`, {
    hint: HINT,
  })
}
