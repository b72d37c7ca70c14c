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
    ['Namespace', 'Secret', 'Secret', 'Secret', 'Secret', 'ConfigMap', 'DaemonSet', 'Job'],
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
  await writeFile(path, manifests.find(({ kind }) => kind === 'ConfigMap')!.data!['dsc.yaml']!)
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

interface Pod {
  readonly nodeSelector: object
  readonly securityContext: { readonly runAsNonRoot?: boolean }
  readonly volumes: readonly { readonly secret?: { readonly secretName: string } }[]
  readonly containers: readonly Container[]
}

interface Container {
  readonly securityContext: { readonly runAsNonRoot?: boolean; readonly allowPrivilegeEscalation: boolean }
  readonly envFrom: readonly { readonly secretRef: { readonly name: string } }[]
  readonly resources: { readonly limits: { readonly memory: string } }
  readonly livenessProbe: { readonly httpGet: { readonly path: string } }
  readonly readinessProbe: { readonly httpGet: { readonly path: string } }
}

test('agents and jobs on Kubernetes have what they need and no more', async () => {
  const manifests = parseAllDocuments(await readFile(MANIFESTS, 'utf8')).map((document) => document.toJS())
  const pod = (kind: string): Pod => manifests.find((manifest) => manifest.kind === kind).spec.template.spec
  const [agents, job] = [pod('DaemonSet'), pod('Job')]
  const [agent, train] = [agents.containers[0]!, job.containers[0]!]
  assert.equal(agent.livenessProbe.httpGet.path, '/healthz')
  assert.equal(agent.readinessProbe.httpGet.path, '/readyz')
  assert.equal(agent.securityContext.runAsNonRoot, true)
  assert.equal(job.securityContext.runAsNonRoot, true)
  for (const { securityContext, envFrom, resources } of [agent, train]) {
    assert.equal(securityContext.allowPrivilegeEscalation, false)
    assert.deepEqual(
      envFrom.map(({ secretRef }) => secretRef.name),
      ['dsc-record', 'dsc-s3'],
    )
    assert.ok(resources.limits.memory)
  }
  const secrets = ({ volumes }: Pod) => volumes.flatMap(({ secret }) => (secret ? [secret.secretName] : []))
  assert.deepEqual([secrets(agents), secrets(job)], [['dsc-agents-token'], ['dsc-read-token']])
  assert.ok(agents.nodeSelector && job.nodeSelector)
})
