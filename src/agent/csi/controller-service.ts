import { createHash } from 'node:crypto'
import { DscError } from '../../failure/dsc-error.js'
import { BoundedMap } from '../../model/bounded-map.js'
import { type Catalog, chooseDataset } from './choose-dataset.js'
import { CsiRefusal } from './csi-failure.js'
import type { Answers } from './grpc-server.js'
import { type Capability, findDatasetAttribute, requireFiles, requireText } from './volume-request.js'

interface CreateMessage {
  readonly name: string
  readonly capacityRange: { readonly requiredBytes: number; readonly limitBytes: number } | null
  readonly volumeCapabilities: readonly Capability[]
  readonly parameters: Readonly<Record<string, string>>
  readonly volumeContentSource: object | null
}

interface ValidateMessage {
  readonly volumeId: string
  readonly volumeCapabilities: readonly Capability[]
  readonly volumeContext: Readonly<Record<string, string>>
}

/** Given by a provisioner with `--extra-create-metadata`. Without it, the node alone says who may read what. */
const CLAIM_NAMESPACE = 'csi.storage.k8s.io/pvc/namespace'

/** How many volumes are known again by their parameters; what kubelet needs of a volume is in its attributes. */
const MAX_REMEMBERED = 10_000

/**
 * The three calls of CSI's Controller service that claims need. Nothing is made or deleted anywhere: a volume is another
 * name for a dataset, which a node stages once a pod mounts it. So the same claim gives the same volume after a restart,
 * and an id is known by its form.
 */
export function controllerService(catalog: Catalog): Answers {
  const created = new BoundedMap<string, string>(MAX_REMEMBERED)
  return {
    controllerGetCapabilities: () => ({ capabilities: [{ rpc: { type: 'CREATE_DELETE_VOLUME' } }] }),
    createVolume(message: CreateMessage) {
      const name = requireText(message.name, 'name')
      requireCapabilities(message.volumeCapabilities)
      if (message.volumeContentSource)
        throw new DscError('USAGE', 'volume_content_source: expected none, since dsc copies no volumes')
      const dataset = findDatasetAttribute(message.parameters)
      const namespace = message.parameters[CLAIM_NAMESPACE]
      if (namespace !== undefined) chooseDataset(catalog, namespace, dataset)
      const volumeId = `dsc-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
      const made = JSON.stringify([dataset, message.capacityRange])
      if ((created.get(volumeId) ?? made) !== made)
        throw new CsiRefusal('ALREADY_EXISTS', `${name} was created with another size or dataset`)
      created.set(volumeId, made)
      const capacityBytes = message.capacityRange?.requiredBytes ?? 0
      return { volume: { volumeId, capacityBytes, volumeContext: { dataset } } }
    },
    deleteVolume({ volumeId }: Pick<ValidateMessage, 'volumeId'>) {
      created.delete(requireText(volumeId, 'volume_id'))
      return {}
    },
    validateVolumeCapabilities({ volumeId, volumeCapabilities, volumeContext }: ValidateMessage) {
      requireText(volumeId, 'volume_id')
      requireCapabilities(volumeCapabilities)
      if (!/^dsc-[0-9a-f]{32}$/.test(volumeId))
        throw new CsiRefusal('NOT_FOUND', `no volume has the id ${volumeId}`)
      return { confirmed: { volumeCapabilities, volumeContext } }
    },
  }
}

function requireCapabilities(capabilities: readonly Capability[]): void {
  if (capabilities.length === 0)
    throw new DscError('USAGE', 'volume_capabilities: expected at least one, found none')
  for (const each of capabilities) requireFiles(each)
}
