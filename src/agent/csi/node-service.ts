import { statfs } from 'node:fs/promises'
import { CsiRefusal } from './csi-failure.js'
import type { Answers } from './grpc-server.js'
import { type PublishMessage, parseVolumeRequest, requirePath, requireText } from './volume-request.js'
import type { Volumes } from './volumes.js'

interface VolumeMessage {
  readonly volumeId: string
}

/** CSI's Node service: what kubelet calls for the volumes of pods. No stage or attach: a copy is a folder here. */
export function nodeService(volumes: Volumes, node: string): Answers {
  return {
    nodeGetInfo: () => ({ nodeId: node }),
    nodeGetCapabilities: () => ({ capabilities: [{ rpc: { type: 'GET_VOLUME_STATS' } }] }),
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
      if (volumes.findMounted(path)?.volumeId !== volumeId)
        throw new CsiRefusal('NOT_FOUND', `volume ${volumeId} is not mounted at ${path}`)
      return { usage: await measureUsage(path) }
    },
  }
}

/** The file system that the copy is on: a read-only volume has nothing free of its own. */
async function measureUsage(path: string): Promise<readonly object[]> {
  const { blocks, bfree, bavail, bsize, files, ffree } = await statfs(path)
  return [
    { unit: 'BYTES', total: blocks * bsize, used: (blocks - bfree) * bsize, available: bavail * bsize },
    { unit: 'INODES', total: files, used: files - ffree, available: ffree },
  ]
}
