import { type GrpcServer, startGrpcServer } from './grpc-server.js'
import { keepServing } from './keep-serving.js'

/** The plugin as kubelet is to know it. */
export interface Registration {
  /** Name of the driver, such as `dsc.io`. */
  readonly driver: string
  /** Path of the plugin's own socket, as kubelet sees it. */
  readonly endpoint: string
  /** Path of the socket that kubelet looks for in its `plugins_registry`. */
  readonly path: string
  /** Called each time kubelet has taken the driver, and CSINode lists it. */
  readonly onTaken: () => void
  readonly note: (sentence: string) => void
}

/**
 * Registers the plugin with kubelet, which connects to every socket in its folder: now, after each of its restarts, and
 * whenever the socket is created again. Returns a function that ends this and removes the socket.
 */
export function registerPlugin(registration: Registration): Promise<() => Promise<void>> {
  const { path, note } = registration
  let isRefused = false
  const start = () => {
    isRefused = false
    return startServer(registration, () => {
      isRefused = true
    })
  }
  return keepServing({ path, start, mustRestart: () => isRefused, note })
}

function startServer(
  { driver, endpoint, path, onTaken, note }: Registration,
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
          if (pluginRegistered) onTaken()
          else onRefused()
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
