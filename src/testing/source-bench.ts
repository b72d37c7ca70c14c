import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Dataset } from '../model/dataset.js'
import { openS3Source } from '../sources/s3/s3-source.js'
import type { Source } from '../sources/source.js'
import { type FaultProxy, startFaultProxy } from './fault-proxy.js'
import { type S3Server, startS3Server } from './s3-server.js'

/** An S3 server behind a proxy that can inject faults, and a folder to stage into. */
export interface SourceBench {
  readonly server: S3Server
  readonly proxy: FaultProxy
  /** A new bucket with these objects under `data/`, accessed through the proxy. */
  makeSource(
    objects: Readonly<Record<string, string | Uint8Array>>,
    rest?: Partial<Dataset>,
  ): Promise<BenchSource>
  /** A path in the bench's folder that does not exist yet. */
  makePath(name: string): string
  close(): Promise<void>
}

export interface BenchSource {
  readonly bucket: string
  readonly dataset: Dataset
  readonly source: Source
}

/** Sets up a bench; from then on, the process's AWS environment is that of its server. */
export async function startSourceBench(): Promise<SourceBench> {
  const server = await startS3Server()
  Object.assign(process.env, server.environment)
  const proxy = await startFaultProxy(server.endpoint)
  const root = mkdtempSync(join(tmpdir(), 'dsc-stage-'))
  const opened: Source[] = []
  let paths = 0
  return {
    server,
    proxy,
    async makeSource(objects, rest = {}) {
      const bucket = await server.makeBucket()
      for (const [key, body] of Object.entries(objects)) await server.putObject(bucket, `data/${key}`, body)
      const dataset: Dataset = {
        name: 'bench',
        source: `s3://${bucket}/data/`,
        endpoint: proxy.endpoint,
        region: 'us-east-1',
        pathStyle: true,
        include: [],
        exclude: [],
        ...rest,
      }
      const source = openS3Source(dataset)
      opened.push(source)
      proxy.forget()
      return { bucket, dataset, source }
    },
    makePath(name) {
      paths += 1
      return join(root, `${paths}-${name}`)
    },
    async close() {
      for (const source of opened) await source.close()
      await proxy.close()
      await server.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}
