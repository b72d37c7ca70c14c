import { Client, credentials } from '@grpc/grpc-js'
import { readProtocol } from '../agent/csi/grpc-server.js'

/** Calls of a CSI plugin, as kubelet makes them. */
export interface CsiClient {
  /** Rejects with grpc-js's ServiceError, whose `code` is the status and whose `details` are its words. */
  call(
    service: 'Identity' | 'Node' | 'Controller',
    method: string,
    request: object,
    deadlineMs?: number,
  ): Promise<object>
  close(): void
}

/** How long a call may take unless it says so, in ms. */
const PATIENCE_MS = 60_000

/** Opens a real gRPC client of the plugin at the socket `path`. */
export function openCsiClient(path: string): CsiClient {
  const client = new Client(`unix:${path}`, credentials.createInsecure())
  const protocol = readProtocol('csi.proto')
  return {
    call(service, method, request, deadlineMs = PATIENCE_MS) {
      const definition = protocol[`csi.v1.${service}`]![method]!
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          definition.path,
          definition.requestSerialize as (value: object) => Buffer,
          definition.responseDeserialize as (value: Buffer) => object,
          request,
          { deadline: Date.now() + deadlineMs },
          (error, response) => (error ? reject(error) : resolve(response!)),
        )
      })
    },
    close: () => client.close(),
  }
}
