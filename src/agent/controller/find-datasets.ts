import { z } from 'zod'
import { unlessRejected } from '../../failure/unless-code.js'
import type { Dataset } from '../../model/dataset.js'
import { type ApiServer, MISSING } from '../csi/api-server.js'
import { type Catalog, chooseDataset } from '../csi/choose-dataset.js'
import { findDatasetAttribute } from '../csi/volume-request.js'
import type { PodSpec } from './pod-needs.js'

/** A pod names a claim that does not exist yet. */
export class ClaimMissing extends Error {}

const claim = z.object({
  spec: z.object({ volumeName: z.string().optional(), storageClassName: z.string().optional() }),
})
const attributes = z.record(z.string(), z.string()).default({})
const volume = z.object({
  spec: z.object({ csi: z.object({ driver: z.string(), volumeAttributes: attributes }).optional() }),
})
const storageClass = z.object({ provisioner: z.string(), parameters: attributes })

/** Where the volumes of pods are looked up, and which datasets they may have. */
export interface VolumeMeans {
  readonly api: Pick<ApiServer, 'get'>
  readonly catalog: Catalog
  readonly driver: string
}

/**
 * The datasets that a pod of `namespace` mounts, each once, with the rights that the mount will have. Leaves out volumes
 * with a Secret, which only kubelet may read. Rejects as `chooseDataset`, and with ClaimMissing.
 */
export async function findDatasets(
  means: VolumeMeans,
  namespace: string,
  { volumes }: PodSpec,
): Promise<readonly Dataset[]> {
  const { catalog, driver } = means
  const found = new Map<string, Dataset>()
  for (const { csi, persistentVolumeClaim } of volumes) {
    let named: Readonly<Record<string, string>> | undefined
    if (csi?.driver === driver && !csi.nodePublishSecretRef) named = csi.volumeAttributes
    if (persistentVolumeClaim) named = await readClaim(means, namespace, persistentVolumeClaim.claimName)
    if (named === undefined) continue
    const dataset = chooseDataset(catalog, namespace, findDatasetAttribute(named))
    found.set(dataset.name, dataset)
  }
  return [...found.values()]
}

/** The attributes of the volume that a claim has, or will have; undefined if another driver serves it. */
async function readClaim(
  { api, driver }: VolumeMeans,
  namespace: string,
  name: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`
  const { spec } = claim.parse(await getClaim(api, path, name))
  if (spec.volumeName) {
    const { csi } = volume.parse(await api.get(`/api/v1/persistentvolumes/${spec.volumeName}`)).spec
    return csi?.driver === driver ? csi.volumeAttributes : undefined
  }
  if (!spec.storageClassName) return undefined
  const classPath = `/apis/storage.k8s.io/v1/storageclasses/${spec.storageClassName}`
  const read = await unlessRejected(MISSING, api.get(classPath))
  const made = read === undefined ? undefined : storageClass.parse(read)
  return made?.provisioner === driver ? made.parameters : undefined
}

async function getClaim(api: VolumeMeans['api'], path: string, name: string): Promise<unknown> {
  const found = await unlessRejected(MISSING, api.get(path))
  if (found === undefined) throw new ClaimMissing(`no claim is called ${JSON.stringify(name)} yet`)
  return found
}
