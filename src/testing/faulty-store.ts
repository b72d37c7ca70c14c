import { type FaultProxy, startFaultProxy } from './fault-proxy.js'
import { type S3Server, startS3Server } from './s3-server.js'

/** An S3 server with one bucket, behind a proxy that can inject faults. */
export interface FaultyStore {
  readonly server: S3Server
  readonly proxy: FaultProxy
  readonly bucket: string
  close(): Promise<void>
}

/** Starts a server with an empty bucket, and a proxy in front of it. */
export async function startFaultyStore(): Promise<FaultyStore> {
  const server = await startS3Server()
  const proxy = await startFaultProxy(server.endpoint)
  return {
    server,
    proxy,
    bucket: await server.makeBucket(),
    async close() {
      await proxy.close()
      await server.close()
    },
  }
}
