import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { loadConfig } from '../config/load-config.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const MANIFESTS = fileURLToPath(new URL('../../scripts/kubernetes/dsc.yaml', import.meta.url))

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
}

test('the Kubernetes manifests satisfy the schemas of Kubernetes, and their dsc.yaml that of dsc', async (context) => {
  const manifests = parseAllDocuments(await readFile(MANIFESTS, 'utf8')).map(
    (document) => document.toJS() as Manifest,
  )
  assert.deepEqual(
    manifests.map(({ kind }) => kind),
    ['Namespace', 'Secret', 'ConfigMap', 'DaemonSet', 'Job'],
  )
  for (const manifest of manifests) {
    const { apiVersion, kind } = manifest
    const module = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<
      string,
      new (
        manifest: Manifest,
      ) => { validate(): void }
    >
    new module[kind]!(manifest).validate()
  }
  const directory = await temporaryDirectory(context)
  const path = join(directory, 'dsc.yaml')
  await writeFile(path, manifests[2]!.data!['dsc.yaml']!)
  const config = await loadConfig({
    explicitPath: path,
    environment: { XDG_CACHE_HOME: directory },
    workingDirectory: directory,
    homeDirectory: directory,
    version: 'test',
    overrides: {},
  })
  assert.equal(config.record.kind, 'postgres')
  assert.equal(config.agent.listen.host, '0.0.0.0')
})
