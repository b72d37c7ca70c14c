import { join } from 'node:path'
import type { Cache } from '../../cache/cache.js'
import { openOrClose } from '../../failure/closers.js'
import type { PlacedLease } from '../../model/lease.js'
import type { Catalog } from './choose-dataset.js'
import { controllerService } from './controller-service.js'
import { type Answers, startGrpcServer } from './grpc-server.js'
import { keepServing } from './keep-serving.js'
import type { Mounter } from './mounter.js'
import { nodeService } from './node-service.js'
import { registerPlugin } from './register-plugin.js'
import { pluginFolders } from './start-mounter.js'
import { VolumeNotes } from './volume-notes.js'
import { Volumes } from './volumes.js'

/** The settings of the plugin. */
export interface CsiSettings {
  /** Name of the driver, which pods name: `dsc.io`. */
  readonly driver: string
  /** Kubelet's folder: `/var/lib/kubelet`. */
  readonly kubelet: string
  readonly catalog: Catalog
  readonly mounter: Mounter
}

/** A running plugin. */
export interface Csi {
  /** Path of its socket. */
  readonly path: string
  /** Uids of the pods that have volumes here. */
  listPods(): ReadonlySet<string>
  /** As in `Volumes`. */
  reconcile(leases: readonly PlacedLease[]): Promise<void>
  stop(): Promise<void>
}

/** Starts the CSI plugin of this node: kubelet mounts datasets into pods by it. */
export function openCsi(options: {
  readonly cache: Cache
  readonly settings: CsiSettings
  readonly version: string
  readonly note: (sentence: string) => void
}): Promise<Csi> {
  const { cache, settings, note } = options
  const { driver, catalog, mounter } = settings
  const folders = pluginFolders(settings)
  const path = join(folders.plugin, 'csi.sock')
  return openOrClose(async (closers) => {
    const volumes = new Volumes({
      cache,
      catalog,
      notes: new VolumeNotes(join(folders.plugin, 'volumes'), note),
      mounter,
      note,
    })
    closers.add(() => volumes.stop())
    await volumes.reconcile(await cache.record.listLeases({ node: cache.node }))
    const services = {
      'csi.v1.Identity': identityService(driver, options.version),
      'csi.v1.Controller': controllerService(catalog),
      'csi.v1.Node': nodeService(volumes, cache.node),
    }
    const start = () => startGrpcServer({ path, protocol: 'csi.proto', services, note })
    closers.add(await keepServing({ path, start, note }))
    const registry = join(folders.registry, 'reg.sock') // kubelet looks into folders, too
    closers.add(await registerPlugin({ driver, endpoint: path, path: registry, note }))
    return {
      path,
      listPods: () => volumes.listPods(),
      reconcile: (leases) => volumes.reconcile(leases),
      stop: () => closers.close(),
    }
  })
}

/** CSI's Identity service. The plugin is ready as soon as it answers. */
function identityService(driver: string, version: string): Answers {
  return {
    getPluginInfo: () => ({ name: driver, vendorVersion: version }),
    getPluginCapabilities: () => ({ capabilities: [{ service: { type: 'CONTROLLER_SERVICE' } }] }),
    probe: () => ({ ready: { value: true } }),
  }
}
