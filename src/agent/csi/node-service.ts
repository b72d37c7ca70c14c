import { statfs } from 'node:fs/promises'
import type { Cache } from '../../cache/cache.js'
import { findDamagedCopies } from '../../sources/damaged-copies.js'
import { CsiRefusal } from './csi-failure.js'
import type { Answers } from './grpc-server.js'
import type { VolumeNote } from './volume-notes.js'
import { type PublishMessage, parseVolumeRequest, requirePath, requireText } from './volume-request.js'
import type { Volumes } from './volumes.js'

interface VolumeMessage {
  readonly volumeId: string
}

interface HealthMessage extends VolumeMessage {
  readonly volumePublishPath: string
}

/** CSI's Node service: what kubelet calls for the volumes of pods. No stage or attach: a copy is a folder here. */
export function nodeService(
  volumes: Volumes,
  { node, record, root }: Pick<Cache, 'node' | 'record' | 'root'>,
): Answers {
  return {
    nodeGetInfo: () => ({ nodeId: node }),
    nodeGetCapabilities: () => ({
      capabilities: ['GET_VOLUME_STATS', 'GET_VOLUME_HEALTH'].map((type) => ({ rpc: { type } })),
    }),
    async nodePublishVolume(message: PublishMessage, deadlineMs: number) {
      await volumes.publish(parseVolumeRequest(message), deadlineMs)
      return {}
    },
    async nodeUnpublishVolume({ volumeId, targetPath }: VolumeMessage & { readonly targetPath: string }) {
      requireText(volumeId, 'volume_id')
      await volumes.unpublish(requirePath(targetPath, 'target_path'))
      return {}
    },
    async nodeGetVolumeStats({ volumeId, volumePath }: VolumeMessage & { readonly volumePath: string }) {
      requireText(volumeId, 'volume_id')
      const path = requireText(volumePath, 'volume_path')
      requireMounted(volumes, volumeId, path)
      return { usage: await measureUsage(root) }
    },
    async nodeGetVolumeHealth({ volumeId, volumePublishPath: path }: HealthMessage) {
      requireText(volumeId, 'volume_id')
      const { dataset, copyId } = requireMounted(volumes, volumeId, path || undefined) // CSI need not tell the path
      const damaged = await findDamagedCopies(record, dataset)
      const healthStatuses = copyId !== undefined && damaged.has(copyId) ? [describeDamage(dataset)] : []
      return { volumeHealth: { volumeId, healthStatuses } }
    },
  }
}

function requireMounted(volumes: Volumes, volumeId: string, path?: string): VolumeNote {
  const note = volumes.findMounted(volumeId, path)
  if (note) return note
  throw new CsiRefusal('NOT_FOUND', `volume ${volumeId} is not mounted${path ? ` at ${path}` : ''}`)
}

/** The health of a copy that `dsc verify` or a reader found damaged and that nobody has repaired. */
function describeDamage(dataset: string): object {
  const message = `files of ${dataset} differ from their source; try: dsc verify ${dataset} --repair`
  return { status: 'DATA_LOSS', reason: 'Damaged', message }
}

/**
 * The file system that the copies are on: a read-only volume has nothing free of its own. It is measured at the cache root,
 * as only root may look into kubelet's folders of pods.
 */
async function measureUsage(root: string): Promise<readonly object[]> {
  const { blocks, bfree, bavail, bsize, files, ffree } = await statfs(root)
  return [
    { unit: 'BYTES', total: blocks * bsize, used: (blocks - bfree) * bsize, available: bavail * bsize },
    { unit: 'INODES', total: files, used: files - ffree, available: ffree },
  ]
}
