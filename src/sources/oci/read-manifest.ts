import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { tryJson } from '../../model/try-json.js'
import type { ListedObject, ListOptions } from '../source.js'

const annotationMap = z.record(z.string(), z.string()).nullish()

const descriptor = z.looseObject({
  mediaType: z.string(),
  digest: z.string(),
  size: z.number().int().nonnegative(),
  annotations: annotationMap,
  platform: z.looseObject({ os: z.string(), architecture: z.string() }).nullish(),
})

/** Of the OCI Image Specification 1.1, "Image Manifest" and "Image Index"; Docker's schema 2 has the same fields. */
const manifest = z.looseObject({
  layers: z.array(descriptor).optional(),
  manifests: z.array(descriptor).optional(),
  annotations: annotationMap,
})

/** The files of an artifact, or the manifest that an index leads to. */
export type ManifestContent =
  | { readonly objects: readonly ListedObject[] }
  /** Digest of the only manifest of an index. */
  | { readonly next: string }

/** Annotations that hold a layer's file name. */
const NAMES = ['org.opencontainers.image.title', 'org.cncf.model.filepath', 'org.cnai.model.filepath']
/** Media type of a folder that ORAS clients packed and named the layer after; files of any kind have another type. */
const FOLDER = 'application/vnd.oci.image.layer.v1.tar+gzip'
/** Endings that say how a ModelPack layer wraps its file; `raw` wraps nothing. */
const ENDINGS: Readonly<Record<string, string>> = {
  tar: '.tar',
  'tar+gzip': '.tar.gz',
  'tar+zstd': '.tar.zst',
}

/**
 * Reads the files of an artifact: each layer that names one, as ORAS and ModelPack write them. A layer that wraps its
 * file or folder into an archive is that archive. Layers without a name are left out, as ORAS does.
 * Throws SOURCE_UNREACHABLE for what is no manifest, SOURCE_NOT_FOUND where no layer has a name, KEY_UNSAFE for a
 * packed folder named ".", and USAGE for an index of several manifests.
 */
export function readManifest(
  raw: string,
  { what, onLeftOut }: { readonly what: string } & Pick<ListOptions, 'onLeftOut'>,
): ManifestContent {
  const parsed = manifest.safeParse(tryJson(raw))
  const { layers, manifests, annotations } = parsed.data ?? {}
  if (manifests !== undefined) return { next: chooseManifest(manifests, what) }
  if (layers === undefined)
    throw new DscError(
      'SOURCE_UNREACHABLE',
      `${what}: expected an OCI manifest with layers, found ${raw.slice(0, 80)}`,
      { hint: 'check that the URL names a registry, not a web page' },
    )
  const modifiedAtMs = Date.parse(annotations?.['org.opencontainers.image.created'] ?? '') || 0
  const objects = new Map<string, ListedObject>()
  for (const layer of layers) {
    const key = nameLayer(layer, what)
    if (key === undefined) {
      onLeftOut?.(layer.digest, 'the layer names no file')
      continue
    }
    const known = objects.get(key)
    if (known !== undefined && known.versionId !== layer.digest)
      throw new DscError('SOURCE_UNREACHABLE', `${what}: two layers are named ${JSON.stringify(key)}`, {
        hint: 'push the files again, each under a name of its own',
      })
    objects.set(key, toObject(layer, { key, modifiedAtMs, what }))
  }
  if (objects.size === 0)
    throw new DscError('SOURCE_NOT_FOUND', `${what}: none of its ${layers.length} layers names a file`, {
      hint: 'a container image has no files to stage; push files with oras push or modctl',
    })
  return { objects: [...objects.values()] }
}

type Descriptor = z.infer<typeof descriptor>

function nameLayer({ annotations, mediaType }: Descriptor, what: string): string | undefined {
  const name = NAMES.map((each) => annotations?.[each]).find(Boolean)
  if (name === undefined) return undefined
  // ORAS unpacks it into the current folder; as a file, it would be one that `ls` hides.
  if (/^\.*\/*$/.test(name))
    throw new DscError(
      'KEY_UNSAFE',
      `${what}: a layer packs the folder ${JSON.stringify(name)}, which names no file`,
      { hint: `oras pull -o model ${what.replace(/^oci:\/\//, '')}, then dsc prepare ./model` },
    )
  const isFolder = mediaType === FOLDER && !/\.(?:tgz|gz)$/i.test(name)
  const [, ending] = /^application\/vnd\.(?:cncf|cnai)\.model\..*\.(tar(?:\+\w+)?)$/.exec(mediaType) ?? []
  const archive = isFolder ? '.tar.gz' : (ENDINGS[ending ?? ''] ?? '')
  return `${name.replace(/\/+$/, '')}${archive}`
}

function toObject(
  { digest, size, mediaType }: Descriptor,
  { key, modifiedAtMs, what }: { readonly key: string; readonly modifiedAtMs: number; readonly what: string },
): ListedObject {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? []
  if (hex === undefined)
    throw new DscError(
      'SOURCE_UNREACHABLE',
      `${what}: ${mediaType} ${key}: expected a sha256 digest, found ${digest}`,
      { hint: 'push the files again with sha256 digests, which every registry must know' },
    )
  const checksum = { algorithm: 'sha256', value: Buffer.from(hex, 'hex').toString('base64') } as const
  return { key, sizeBytes: size, etag: hex, versionId: digest, checksum, modifiedAtMs }
}

function chooseManifest(manifests: readonly Descriptor[], what: string): string {
  // Signatures and build records stand beside what they belong to, for no platform.
  const contents = manifests.filter(({ platform }) => platform?.os !== 'unknown')
  const [only] = contents
  if (only !== undefined && contents.length === 1) return only.digest
  const found = contents.map(({ digest, platform }) =>
    platform ? `${digest} (${platform.os}/${platform.architecture})` : digest,
  )
  throw new DscError(
    'USAGE',
    `${what} is an index of ${contents.length} manifests: ${found.slice(0, 8).join(', ')}`,
    { hint: 'name the one you want: oci://registry/name@sha256:…' },
  )
}
