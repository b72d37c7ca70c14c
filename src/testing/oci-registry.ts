import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { findFreePort } from './free-port.js'
import { temporaryDirectory } from './temporary-directory.js'
import { waitFor } from './world.js'

/** The only user of a registry that wants to know who asks. */
export const REGISTRY_USER = 'ada:secret'
/** `secret` by bcrypt. */
const HTPASSWD = 'ada:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n'

/** A layer to push; without a title, it is no file. */
export interface Layer {
  readonly title?: string
  readonly body: Uint8Array
  readonly mediaType?: string
  readonly annotations?: Readonly<Record<string, string>>
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

/** A real registry (CNCF Distribution). */
export interface OciRegistry {
  /** `127.0.0.1:port`. */
  readonly host: string
  /** Pushes an artifact as ORAS would, and returns the descriptor of its manifest. */
  push(repository: string, tag: string, layers: readonly Layer[]): Promise<Descriptor>
  /** Pushes an index of manifests. */
  pushIndex(repository: string, tag: string, manifests: readonly Descriptor[]): Promise<Descriptor>
}

/** Starts a registry on its own folder, until the test ends. */
export async function startOciRegistry(
  context: Pick<TestContext, 'after'>,
  { isPrivate = false }: { readonly isPrivate?: boolean } = {},
): Promise<OciRegistry> {
  const folder = await temporaryDirectory(context)
  const host = `127.0.0.1:${await findFreePort()}`
  writeFileSync(join(folder, 'htpasswd'), HTPASSWD)
  const auth = isPrivate ? `auth: { htpasswd: { realm: dsc, path: ${folder}/htpasswd } }` : ''
  const storage = `{ filesystem: { rootdirectory: ${folder}/data }, delete: { enabled: true } }`
  writeFileSync(
    join(folder, 'config.yml'),
    `version: 0.1\nlog: { level: error, accesslog: { disabled: true } }\nstorage: ${storage}\nhttp: { addr: '${host}' }\n${auth}\n`,
  )
  const server = spawn('docker-registry', ['serve', join(folder, 'config.yml')], { stdio: 'ignore' })
  context.after(async () => {
    const ended = once(server, 'exit')
    if (server.kill('SIGKILL')) await ended
  })
  const base = `http://${host}/v2`
  const authorization = `Basic ${Buffer.from(REGISTRY_USER).toString('base64')}`
  const send = async (method: 'POST' | 'PUT', url: string, body: Uint8Array | string, mediaType: string) => {
    const headers = { authorization, 'content-type': mediaType }
    const answer = await fetch(url, { method, headers, body: Buffer.from(body) })
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  await waitFor('the registry', () => fetch(`${base}/`).catch(() => undefined))
  const pushBlob = async (repository: string, body: Uint8Array, mediaType: string) => {
    const digest = digestOf(body)
    const begun = await send('POST', `${base}/${repository}/blobs/uploads/`, '', mediaType)
    const place = new URL(begun.headers.get('location')!, base)
    place.searchParams.set('digest', digest)
    await send('PUT', place.href, body, 'application/octet-stream')
    return { mediaType, digest, size: body.length }
  }
  const pushManifest = async (
    repository: string,
    tag: string,
    content: { readonly mediaType: string; readonly [field: string]: unknown },
  ) => {
    const body = Buffer.from(JSON.stringify({ schemaVersion: 2, ...content }))
    await send('PUT', `${base}/${repository}/manifests/${tag}`, body, content.mediaType)
    return { mediaType: content.mediaType, digest: digestOf(body), size: body.length }
  }
  return {
    host,
    push: async (repository, tag, layers) => {
      const config = await pushBlob(repository, Buffer.from('{}'), 'application/vnd.oci.empty.v1+json')
      const pushed: object[] = []
      for (const { title, body, mediaType = 'application/octet-stream', annotations } of layers) {
        const named = title === undefined ? {} : { 'org.opencontainers.image.title': title }
        const blob = await pushBlob(repository, body, mediaType)
        pushed.push({ ...blob, annotations: { ...named, ...annotations } })
      }
      const mediaType = 'application/vnd.oci.image.manifest.v1+json'
      return pushManifest(repository, tag, { mediaType, config, layers: pushed })
    },
    pushIndex: (repository, tag, manifests) =>
      pushManifest(repository, tag, { mediaType: 'application/vnd.oci.image.index.v1+json', manifests }),
  }
}

function digestOf(body: Uint8Array): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`
}
