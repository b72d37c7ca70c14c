import { isAbsolute, normalize } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { findClosest } from '../../model/find-closest.js'

/** The pod that a volume is for, as kubelet tells it: the pod itself cannot forge it. */
export interface Pod {
  readonly uid: string
  readonly namespace: string
  readonly name: string
}

/** A volume to publish: which dataset, for which pod, at which path. */
export interface VolumeRequest {
  readonly volumeId: string
  /** The path at which the pod's containers find the copy. */
  readonly target: string
  /** A name of a dataset, or a URL. */
  readonly dataset: string
  readonly pod: Pod
  /** The pod's `nodePublishSecretRef`; empty: none. */
  readonly secrets: Readonly<Record<string, string>>
}

/** A request of kubelet, as far as dsc reads it. */
export interface PublishMessage {
  readonly volumeId: string
  readonly targetPath: string
  readonly volumeCapability: Capability | null
  readonly volumeContext: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
}

/** The use of a volume. Access modes do not matter: it is read-only in any. */
export interface Capability {
  readonly block?: object | null
  readonly mount?: object | null
}

const POD = 'csi.storage.k8s.io/pod.'

/** Reads what kubelet asks for. Throws USAGE with the attribute that is wrong. */
export function parseVolumeRequest(message: PublishMessage): VolumeRequest {
  const { volumeCapability, volumeContext } = message
  const volumeId = requireText(message.volumeId, 'volume_id')
  const target = requirePath(message.targetPath, 'target_path')
  requireFiles(volumeCapability)
  const uid = volumeContext[`${POD}uid`]
  const pod = {
    // Kubelet names no pod if the CSIDriver has podInfoOnMount: false. The volume then may have what all namespaces may.
    uid: uid === undefined || uid === '' ? volumeId : requireUid(uid),
    namespace: volumeContext[`${POD}namespace`] ?? '',
    name: volumeContext[`${POD}name`] ?? volumeId,
  }
  return { volumeId, target, dataset: findDatasetAttribute(volumeContext), pod, secrets: message.secrets }
}

/** Throws USAGE for a volume that is not a folder of files. */
export function requireFiles(capability: Capability | null): void {
  if (!capability) throw new DscError('USAGE', 'volume_capability: expected one, found none')
  if (capability.block) throw new DscError('USAGE', 'volumeMode: expected Filesystem, found Block')
}

/** The dataset that a volume's attributes name. Throws USAGE for a missing one, and for attributes that do not exist. */
export function findDatasetAttribute(attributes: Readonly<Record<string, string>>): string {
  // Kubernetes adds attributes of its own, all with a domain.
  const own = Object.keys(attributes).filter((name) => !name.includes('/'))
  const unknown = own.find((name) => name !== 'dataset')
  if (unknown !== undefined) {
    const hint = findClosest(unknown, ['dataset']) ? 'volumeAttributes: { dataset: … }' : undefined
    throw new DscError('USAGE', `volumeAttributes: expected dataset, found ${JSON.stringify(unknown)}`, {
      hint,
    })
  }
  const { dataset } = attributes
  if (dataset) return dataset
  throw new DscError('USAGE', 'volumeAttributes.dataset: expected the name of a dataset, found none', {
    hint: 'volumeAttributes: { dataset: flowers }',
  })
}

/** Throws USAGE for a missing text. */
export function requireText(raw: string, name: string): string {
  if (raw) return raw
  throw new DscError('USAGE', `${name}: expected a text, found none`)
}

/** Throws USAGE for anything but an absolute path without `..`. */
export function requirePath(raw: string, name: string): string {
  const path = requireText(raw, name)
  if (isAbsolute(path) && normalize(path) === path && !path.endsWith('/')) return path
  throw new DscError('USAGE', `${name}: expected an absolute path, found ${JSON.stringify(path)}`)
}

function requireUid(raw: string): string {
  if (/^[A-Za-z0-9-]{1,64}$/.test(raw)) return raw
  throw new DscError('USAGE', `${POD}uid: expected a uid, found ${JSON.stringify(raw.slice(0, 80))}`)
}
