import { z } from 'zod'
import { ApiRefusal, type NodeApiServer } from '../../agent/csi/api-server.js'
import { isOnDiskOfKubelet, leaveRoomToKubelet } from '../../agent/csi/kubelet-room.js'
import type { Config } from '../../config/config.js'
import { formatByteSize } from '../../model/byte-size.js'
import { parseQuantity } from '../../model/quantity.js'
import { readDiskUsage } from '../../platform/disk-usage.js'
import { type Check, failed, ok, skipped, warning } from './check.js'

/** The part of the disk that copies leave free above the bytes at which kubelet evicts pods: others write, too. */
const MARGIN = 0.05
/** With this gate, Kueue's topology-aware scheduling heeds the affinity by which pods prefer nodes with their data. */
const GATE = 'TASRespectNodeAffinityPreferred'
/** Where gates of Kueue's manager are set: in its configuration, or in the arguments of its container. */
const KUEUE_PLACES = [
  '/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config',
  '/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager',
]

const quantity = z.union([z.string(), z.number()]).default(0)
const room = z.object({ 'ephemeral-storage': quantity })
const nodeObject = z.object({
  spec: z.object({ taints: z.array(z.object({ key: z.string() })).default([]) }),
  status: z.object({ capacity: room, allocatable: room }),
})

/** Checks what the agent in this pod needs of its cluster. */
export async function checkKubernetes(config: Config, api: NodeApiServer): Promise<Check[]> {
  const { node, csi } = config
  let found: z.output<typeof nodeObject>
  try {
    found = nodeObject.parse(await api.get(`/api/v1/nodes/${encodeURIComponent(node)}`))
  } catch (error) {
    return [failed('kubernetes', `node ${node}: ${(error as Error).message}`, adviseNode(error))]
  }
  const taint = `${csi.driver}/agent-not-ready`
  const isTainted = found.spec.taints.some(({ key }) => key === taint)
  return [
    isTainted
      ? warning(
          'kubernetes',
          `node ${node} has the taint ${taint}: kubelet has not registered ${csi.driver}`,
          'see the log of its agent',
        )
      : ok('kubernetes', `node ${node} takes pods`),
    ...(await checkKubeletRoom(config, found.status)),
    ...(await checkKueue(api)),
  ]
}

function adviseNode(error: unknown): string {
  if (!(error instanceof ApiRefusal)) return 'let pods of this namespace reach the API server'
  return error.statusCode === 404
    ? 'set DSC_NODE to spec.nodeName of the pod'
    : 'let the service account of the agents get nodes, as base/node-access.yaml does'
}

/** Compares the space that copies leave free on kubelet's disk with that below which kubelet evicts pods. */
async function checkKubeletRoom(
  { cache, csi }: Config,
  { capacity, allocatable }: z.output<typeof nodeObject>['status'],
): Promise<Check[]> {
  const { root } = cache
  if (!(await isOnDiskOfKubelet(root, csi.kubelet))) return []
  const measureDisk = () => readDiskUsage(root)
  const { policy } = await leaveRoomToKubelet({ root, policy: cache.policy, measureDisk }, csi.kubelet)
  const { minFreeBytes = 0 } = policy
  const bytes = parseQuantity(capacity['ephemeral-storage'])
  // Kubelet keeps from pods what it defends, and what the system has reserved.
  const defended = bytes - parseQuantity(allocatable['ephemeral-storage'])
  const needed = Math.ceil(defended + bytes * MARGIN)
  const left = `copies leave ${formatByteSize(minFreeBytes)} free on kubelet's disk`
  const evicts = `kubelet may evict pods below ${formatByteSize(defended)}`
  return minFreeBytes >= needed
    ? [ok('kubelet', `${left}; ${evicts}`)]
    : [
        warning(
          'kubelet',
          `${left}; ${evicts}`,
          `set cache.minFree: ${Math.ceil(needed / 2 ** 30)}GiB in dsc.yaml`,
        ),
      ]
}

/** Looks whether Kueue, where it is, heeds preferred nodes. */
async function checkKueue(api: NodeApiServer): Promise<Check[]> {
  const answers = await Promise.all(KUEUE_PLACES.map((path) => readPlace(api, path)))
  if (answers.every((answer) => answer === undefined)) return []
  if (answers.some((answer) => answer instanceof Error))
    return [
      skipped(
        'kueue',
        `its gates cannot be read: ${answers.find((answer) => answer instanceof Error)?.message}`,
      ),
    ]
  const isOn = findGate(GATE, answers) ?? findGate('AllAlpha', answers)
  return isOn === 'true'
    ? [ok('kueue', `${GATE} is on`)]
    : [
        warning(
          'kueue',
          `${GATE} is not on: topology-aware scheduling ignores which nodes have the data`,
          `start kueue-controller-manager with --feature-gates=${GATE}=true (Kueue 0.18 or newer)`,
        ),
      ]
}

/** The value of a gate in `A=true,B=false`, or in YAML. */
function findGate(gate: string, places: readonly unknown[]): string | undefined {
  return new RegExp(`\\b${gate}\\W+(true|false)`).exec(places.join('\n'))?.[1]
}

/** The object as text, undefined if the cluster has none, or why it cannot be read. */
async function readPlace(api: NodeApiServer, path: string): Promise<string | Error | undefined> {
  try {
    return JSON.stringify(await api.get(path))
  } catch (error) {
    return error instanceof ApiRefusal && error.statusCode === 404 ? undefined : (error as Error)
  }
}
