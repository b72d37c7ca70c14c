import { existsSync } from 'node:fs'
import { type GrpcServer, startGrpcServer } from './grpc-server.js'

/** How often to look whether kubelet, or somebody who cleaned up, removed the socket, in ms. */
const LOOK_MS = 5000

/** The plugin as kubelet is to know it. */
export interface Registration {
  /** Name of the driver, such as `dsc.io`. */
  readonly driver: string
  /** Path of the plugin's own socket, as kubelet sees it. */
  readonly endpoint: string
  /** Path of the socket that kubelet looks for in its `plugins_registry`. */
  readonly path: string
  readonly note: (sentence: string) => void
}

/**
 * Registers the plugin with kubelet, which connects to every socket in its folder: now, after each of its restarts, and
 * whenever the socket is made anew. Returns a function that ends this and removes the socket.
 */
export async function registerPlugin(registration: Registration): Promise<() => Promise<void>> {
  let server: GrpcServer | undefined
  let isRefused = false
  const open = async () => {
    server?.stop()
    isRefused = false
    server = await startServer(registration, () => {
      isRefused = true
    })
  }
  await open()
  let opening: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    if (existsSync(registration.path) && !isRefused) return
    opening = opening.then(open).catch((error: Error) => registration.note(error.message))
  }, LOOK_MS)
  return async () => {
    clearInterval(timer)
    await opening
    server?.stop()
  }
}

function startServer(
  { driver, endpoint, path, note }: Registration,
  onRefused: () => void,
): Promise<GrpcServer> {
  return startGrpcServer({
    path,
    protocol: 'registration.proto',
    services: {
      'pluginregistration.Registration': {
        getInfo: () => ({ type: 'CSIPlugin', name: driver, endpoint, supportedVersions: ['1.0.0'] }),
        notifyRegistrationStatus({ pluginRegistered, error }: RegistrationStatus) {
          note(pluginRegistered ? `kubelet knows ${driver}` : `kubelet does not take ${driver}: ${error}`)
          if (!pluginRegistered) onRefused()
          return {}
        },
      },
    },
    note,
  })
}

interface RegistrationStatus {
  readonly pluginRegistered: boolean
  readonly error: string
}
