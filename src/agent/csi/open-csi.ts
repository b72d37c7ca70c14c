import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cache } from '../../cache/cache.js'
import { openOrClose } from '../../failure/closers.js'
import type { Dataset } from '../../model/dataset.js'
import type { PlacedLease } from '../../model/lease.js'
import { type ApiServer, findApiServer } from './api-server.js'
import type { Catalog } from './choose-dataset.js'
import { controllerService } from './controller-service.js'
import { type Answers, startGrpcServer } from './grpc-server.js'
import { keepServing } from './keep-serving.js'
import type { Mounter } from './mounter.js'
import { NodeObject } from './node-object.js'
import { nodeService } from './node-service.js'
import { PodEvents } from './pod-events.js'
import { registerPlugin } from './register-plugin.js'
import { pluginFolders } from './start-mounter.js'
import { tellStagings } from './tell-stagings.js'
import { VolumeNotes } from './volume-notes.js'
import { Volumes } from './volumes.js'
import { wakeKubelet } from './wake-kubelet.js'

/** How long an agent that stops waits for the API server, in ms. */
const LEAVE_MS = 3000

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
  /** The copies of this node may have changed. */
  copiesChanged(): void
  /** As in `Volumes`. */
  reconcile(leases: readonly PlacedLease[]): Promise<void>
  stop(): Promise<void>
}

/** Starts the CSI plugin of this node: kubelet mounts datasets into pods by it. */
export function openCsi(options: {
  readonly cache: Cache
  readonly settings: CsiSettings
  readonly version: string
  /** As in `VolumeMeans`. */
  readonly onPrivate: () => void
  readonly note: (sentence: string) => void
}): Promise<Csi> {
  const { cache, settings, note } = options
  const { driver, catalog, mounter } = settings
  const folders = pluginFolders(settings)
  const path = join(folders.plugin, 'csi.sock')
  const stopping = new AbortController()
  const api = findApiServer(process.env, stopping.signal)
  return openOrClose(async (closers) => {
    const volumes = new Volumes({
      cache,
      catalog,
      notes: new VolumeNotes(join(folders.plugin, 'volumes'), note),
      mounter,
      onPrivate: options.onPrivate,
      onLateMount: (pod) => void (api && wakeKubelet(pod, { api, driver, note })),
      note,
    })
    closers.add(() => volumes.stop())
    await volumes.reconcile(await cache.record.listLeases({ node: cache.node }))
    const services = {
      'csi.v1.Identity': identityService(driver, options.version),
      'csi.v1.Controller': controllerService(catalog),
      'csi.v1.Node': nodeService(volumes, cache),
    }
    const start = () => startGrpcServer({ path, protocol: 'csi.proto', services, note })
    closers.add(await keepServing({ path, start, note }))
    const registry = join(folders.registry, 'reg.sock') // kubelet looks into folders, too
    closers.add(() => stopping.abort('the agent stops'))
    if (api) closers.add(tellPods(options, api, volumes))
    const nodeObject = api && makeNodeObject(options, api, stopping.signal)
    closers.add(() => Promise.race([nodeObject?.leave(), sleep(LEAVE_MS, undefined, { ref: false })]))
    const onTaken = () => void nodeObject?.registered()
    closers.add(await registerPlugin({ driver, endpoint: path, path: registry, onTaken, note }))
    return {
      path,
      listPods: () => volumes.listPods(),
      copiesChanged: () => nodeObject?.keepSoon(),
      async reconcile(leases) {
        await volumes.reconcile(leases)
        void nodeObject?.keep() // the API server may be away; leases must not wait for it
      },
      stop: () => closers.close(),
    }
  })
}

/** Tells pods how far their datasets are. A cluster that gives agents no right to do so is told of once. */
function tellPods(
  { settings: { driver }, note }: Parameters<typeof openCsi>[0],
  api: ApiServer,
  volumes: Volumes,
): () => void {
  let told: string | undefined
  const onFailure = (error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    if (told !== reason) note(`pods are not told how far their datasets are: ${reason}`)
    told = reason
  }
  return tellStagings(() => volumes.listStagings(), new PodEvents({ api, component: driver, onFailure }))
}

/** The node's object, which names its copies. */
function makeNodeObject(
  { cache, settings, note }: Parameters<typeof openCsi>[0],
  api: ApiServer,
  stopping: AbortSignal,
): NodeObject {
  const { driver, catalog } = settings
  const { record, node } = cache
  const isForAll = ({ name }: Dataset) => !Object.hasOwn(catalog.rules.datasets, name)
  const shown = new Set(catalog.declared.filter(isForAll).map(({ name }) => name))
  const listCopies = () => record.listCopies({ node }, cache.nowMs())
  return new NodeObject({ api, driver, node, shown, listCopies, stopping, note })
}

/** CSI's Identity service. The plugin is ready as soon as it answers. */
function identityService(driver: string, version: string): Answers {
  return {
    getPluginInfo: () => ({ name: driver, vendorVersion: version }),
    getPluginCapabilities: () => ({ capabilities: [{ service: { type: 'CONTROLLER_SERVICE' } }] }),
    probe: () => ({ ready: { value: true } }),
  }
}
