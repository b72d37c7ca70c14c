import { z } from 'zod'
import { parseQuantity } from '../../model/quantity.js'

const expression = z.object({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).default([]),
})
const term = z.object({
  matchExpressions: z.array(expression).default([]),
  matchFields: z.array(expression).default([]),
})
const quantities = z.record(z.string(), z.union([z.string(), z.number()])).default({})
const container = z.object({
  resources: z.object({ requests: quantities, limits: quantities }).partial().default({}),
})
const volume = z.object({
  name: z.string(),
  csi: z
    .object({
      driver: z.string(),
      volumeAttributes: z.record(z.string(), z.string()).default({}),
      nodePublishSecretRef: z.object({ name: z.string() }).optional(),
    })
    .optional(),
  persistentVolumeClaim: z.object({ claimName: z.string() }).optional(),
})

/** The part of a pod's spec, or of a template's, that decides what the pod needs and where it may run. */
export const podSpec = z.object({
  nodeSelector: z.record(z.string(), z.string()).default({}),
  affinity: z
    .looseObject({
      nodeAffinity: z
        .looseObject({
          requiredDuringSchedulingIgnoredDuringExecution: z
            .object({ nodeSelectorTerms: z.array(term) })
            .optional(),
          preferredDuringSchedulingIgnoredDuringExecution: z.array(z.unknown()).optional(),
        })
        .optional(),
    })
    .optional(),
  tolerations: z
    .array(
      z.object({
        key: z.string().optional(),
        operator: z.string().default('Equal'),
        value: z.string().default(''),
        effect: z.string().optional(),
      }),
    )
    .default([]),
  containers: z.array(container).default([]),
  initContainers: z.array(container).default([]),
  overhead: quantities,
  volumes: z.array(volume).default([]),
})

export type PodSpec = z.output<typeof podSpec>
export type NodeSelectorTerm = z.output<typeof term>
export type Quantities = Readonly<Record<string, number>>

export function parseQuantities(raw: Readonly<Record<string, string | number>>): Quantities {
  return Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, parseQuantity(value)]))
}

/** The requests that the scheduler counts for a pod: the sum of its containers, or its largest init container, with its overhead. */
export function sumRequests({ containers, initContainers, overhead }: PodSpec): Quantities {
  const sum: Record<string, number> = { pods: 1 }
  const ask = ({ resources }: PodSpec['containers'][number]) =>
    Object.entries(parseQuantities({ ...resources.limits, ...resources.requests }))
  for (const [name, value] of containers.flatMap(ask)) sum[name] = (sum[name] ?? 0) + value
  for (const [name, value] of initContainers.flatMap(ask)) sum[name] = Math.max(sum[name] ?? 0, value)
  for (const [name, value] of Object.entries(parseQuantities(overhead))) sum[name] = (sum[name] ?? 0) + value
  return sum
}
