import { z } from 'zod'
import { type PodSpec, parseQuantities, podSpec, type Quantities, sumRequests } from './pod-needs.js'

/** A pod that has not ended. */
export interface PodObject {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly version: string
  /** Names of its scheduling gates. */
  readonly gates: readonly string[]
  /** Where it runs, once it is scheduled. */
  readonly node: string | undefined
  /** Whether it has not started yet. */
  readonly isPending: boolean
  readonly requests: Quantities
  /** Of gated pods alone: others are only counted. */
  readonly spec: PodSpec | undefined
}

/** A node of the cluster. */
export interface NodeObject {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[]
  readonly isUnschedulable: boolean
  readonly allocatable: Quantities
}

const pod = z.object({
  metadata: z.object({
    uid: z.string(),
    namespace: z.string(),
    name: z.string(),
    resourceVersion: z.string(),
  }),
  spec: podSpec.extend({
    nodeName: z.string().optional(),
    schedulingGates: z.array(z.object({ name: z.string() })).default([]),
  }),
  status: z.object({ phase: z.string().default('Pending') }).default({ phase: 'Pending' }),
})

/** Reads a pod; undefined for one that has ended. Throws a ZodError for anything else. */
export function parsePod(raw: unknown): PodObject | undefined {
  const { metadata, spec, status } = pod.parse(raw)
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return undefined
  const gates = spec.schedulingGates.map(({ name }) => name)
  return {
    uid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    version: metadata.resourceVersion,
    gates,
    node: spec.nodeName,
    isPending: status.phase === 'Pending',
    requests: sumRequests(spec),
    spec: gates.length > 0 ? spec : undefined,
  }
}

const node = z.object({
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  spec: z
    .object({
      taints: z
        .array(z.object({ key: z.string(), value: z.string().default(''), effect: z.string() }))
        .default([]),
      unschedulable: z.boolean().default(false),
    })
    .default({ taints: [], unschedulable: false }),
  status: z.object({ allocatable: z.record(z.string(), z.union([z.string(), z.number()])).default({}) }),
})

/** Reads a node. Throws a ZodError for anything else. */
export function parseNode(raw: unknown): NodeObject {
  const { metadata, spec, status } = node.parse(raw)
  return {
    ...metadata,
    taints: spec.taints,
    isUnschedulable: spec.unschedulable,
    allocatable: parseQuantities(status.allocatable),
  }
}
