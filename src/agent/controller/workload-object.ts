import { z } from 'zod'
import { type PodSpec, podSpec } from './pod-needs.js'

/** A workload of Kueue that has not finished. */
export interface WorkloadObject {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly createdAtMs: number
  readonly priority: number
  readonly podSets: readonly { readonly name: string; readonly count: number; readonly spec: PodSpec }[]
  /** Whether quota is reserved for it: Kueue waits for the checks alone. */
  readonly hasQuota: boolean
  /** When Kueue admitted it, ms; undefined: not yet. */
  readonly admittedAtMs: number | undefined
  readonly checks: readonly CheckState[]
}

/** How one admission check of a workload stands. */
export interface CheckState {
  readonly name: string
  readonly state: string
  readonly message: string
}

/** An AdmissionCheck of Kueue. */
export interface CheckObject {
  readonly name: string
  readonly controller: string
  readonly isActive: boolean
}

const condition = z.object({
  type: z.string(),
  status: z.string(),
  lastTransitionTime: z.string().optional(),
})
const conditions = z.array(condition).default([])
const metadata = z.object({
  uid: z.string(),
  namespace: z.string().default(''),
  name: z.string(),
  creationTimestamp: z.string().default(''),
})

const workload = z.object({
  metadata,
  spec: z.object({
    active: z.boolean().default(true),
    priority: z.number().default(0),
    podSets: z
      .array(
        z.object({ name: z.string(), count: z.number().default(1), template: z.object({ spec: podSpec }) }),
      )
      .default([]),
  }),
  status: z
    .object({
      conditions,
      admissionChecks: z
        .array(z.object({ name: z.string(), state: z.string(), message: z.string().default('') }))
        .default([]),
    })
    .default({ conditions: [], admissionChecks: [] }),
})

/** Reads a workload; undefined for one that has finished or is deactivated. Throws a ZodError for anything else. */
export function parseWorkload(raw: unknown): WorkloadObject | undefined {
  const { metadata: own, spec, status } = workload.parse(raw)
  const find = (type: string) =>
    status.conditions.find((each) => each.type === type && each.status === 'True')
  if (find('Finished') || !spec.active) return undefined
  const admitted = find('Admitted')
  return {
    uid: own.uid,
    namespace: own.namespace,
    name: own.name,
    createdAtMs: Date.parse(own.creationTimestamp),
    priority: spec.priority,
    podSets: spec.podSets.map(({ name, count, template }) => ({ name, count, spec: template.spec })),
    hasQuota: find('QuotaReserved') !== undefined,
    admittedAtMs: admitted && Date.parse(admitted.lastTransitionTime ?? ''),
    checks: status.admissionChecks,
  }
}

const check = z.object({
  metadata,
  spec: z.object({ controllerName: z.string() }),
  status: z.object({ conditions }).default({ conditions: [] }),
})

/** Reads an AdmissionCheck. Throws a ZodError for anything else. */
export function parseCheck(raw: unknown): CheckObject {
  const { metadata: own, spec, status } = check.parse(raw)
  const isActive = status.conditions.some(({ type, status: is }) => type === 'Active' && is === 'True')
  return { name: own.name, controller: spec.controllerName, isActive }
}
