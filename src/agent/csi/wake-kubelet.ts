import { ApiRefusal, type ApiServer } from './api-server.js'
import type { Pod } from './volume-request.js'

/** The agent may lack the right to patch pods, and the pod may be gone or replaced by another of its name. */
const USUAL_REFUSALS: readonly number[] = [403, 404, 409]

/**
 * Has kubelet look at a pod at once. Kubelet waits for the volumes of a pod for 123 s, then pauses for 10 to 15 s. Only a
 * change of the pod's object ends a pause. Never rejects.
 */
export async function wakeKubelet(
  pod: Pod,
  means: {
    readonly api: Pick<ApiServer, 'patch'>
    readonly driver: string
    readonly note: (sentence: string) => void
  },
): Promise<void> {
  const { namespace, name, uid } = pod
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
  const annotations = { [`${means.driver}/mounted`]: new Date().toISOString() }
  try {
    await means.api.patch(path, 'merge-patch', { metadata: { uid, annotations } })
  } catch (error) {
    if (error instanceof ApiRefusal && USUAL_REFUSALS.includes(error.statusCode)) return
    means.note(`pod ${namespace}/${name} may start 15 s later: ${(error as Error).message}`)
  }
}
