import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../config/load-config.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const FOLDER = fileURLToPath(new URL('../../scripts/kubernetes', import.meta.url))
const KUSTOMIZATIONS = ['base', 'site'] as const

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
  readonly metadata: { readonly name: string; readonly namespace?: string }
  // biome-ignore lint/suspicious/noExplicitAny: each kind has another, which kubernetes-models checks.
  readonly spec?: any
}

/** What a kustomization names: files, and what it makes of them. */
interface Kustomization {
  readonly resources: readonly string[]
  readonly configMapGenerator: readonly Generator[]
  readonly secretGenerator: readonly Generator[]
}

interface Generator {
  readonly name: string
  readonly files?: readonly string[]
  readonly envs?: readonly string[]
}

function readManifests(...paths: readonly string[]): readonly Manifest[] {
  return paths.flatMap((path) =>
    parseAllDocuments(readFileSync(join(FOLDER, path), 'utf8')).map(
      (document) => document.toJS() as Manifest,
    ),
  )
}

const readKustomization = (folder: string): Kustomization =>
  parse(readFileSync(join(FOLDER, folder, 'kustomization.yaml'), 'utf8'))

async function validate(manifests: readonly Manifest[]): Promise<void> {
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
}

test('the Kubernetes manifests satisfy the schemas of Kubernetes', async () => {
  const manifests = readManifests('base/namespace.yaml', 'base/agents.yaml', 'train-flowers.yaml')
  assert.deepEqual(
    manifests.map(({ kind }) => kind),
    ['Namespace', 'DaemonSet', 'Job'],
  )
  await validate(manifests)
})

test('every file that a kustomization names is there, and what pods mount is made by it', () => {
  for (const folder of KUSTOMIZATIONS) {
    const { resources, configMapGenerator, secretGenerator } = readKustomization(folder)
    const generators = [...configMapGenerator, ...secretGenerator]
    const named = generators.flatMap(({ files = [], envs = [] }) => [...files, ...envs])
    for (const file of [...resources, ...named.map((each) => each.replace(/^.*=/, ''))])
      assert.ok(existsSync(join(FOLDER, folder, file)), `${folder} names ${file}`)
    const made = new Set(generators.map(({ name }) => name))
    for (const name of ['dsc-config', 'dsc-agents-token', 'dsc-read-token', 'dsc-record', 'dsc-s3'])
      assert.ok(made.has(name), `${folder} makes no ${name}`)
  }
})

test('the dsc.yaml of every kustomization is one that dsc reads', async (context: TestContext) => {
  const directory = await temporaryDirectory(context)
  for (const folder of KUSTOMIZATIONS) {
    const config = await loadConfig({
      explicitPath: join(FOLDER, folder, 'dsc.yaml'),
      environment: { XDG_CACHE_HOME: directory },
      workingDirectory: directory,
      homeDirectory: directory,
      version: 'test',
      overrides: {},
    })
    assert.equal(config.record.kind, 'postgres')
    assert.equal(config.agent.listen.host, '0.0.0.0')
  }
})

/** kubectl breaks the base64 of a secret into lines, which Kubernetes takes and its schema does not. */
function joinLines(manifest: Manifest): Manifest {
  if (manifest.kind !== 'Secret') return manifest
  const data = Object.entries(manifest.data ?? {}).map(([key, value]) => [key, value.replaceAll('\n', '')])
  return { ...manifest, data: Object.fromEntries(data) }
}

const hasKubectl = spawnSync('kubectl', ['kustomize', '--help']).status === 0

test('kubectl makes of the site what Kubernetes takes', { skip: !hasKubectl && 'no kubectl' }, async () => {
  const rendered = execFileSync('kubectl', ['kustomize', join(FOLDER, 'site')], { encoding: 'utf8' })
  const manifests = parseAllDocuments(rendered).map((document) => document.toJS() as Manifest)
  assert.deepEqual(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted(), [
    'ConfigMap dsc-config',
    'DaemonSet dsc-agent',
    'Namespace dsc',
    ...['dsc-agents-token', 'dsc-read-token', 'dsc-record', 'dsc-s3'].map((name) => `Secret ${name}`),
  ])
  for (const { kind, metadata } of manifests)
    if (kind !== 'Namespace') assert.equal(metadata.namespace, 'dsc')
  await validate(manifests.map(joinLines))
  const { volumes } = manifests.find(({ kind }) => kind === 'DaemonSet')!.spec.template.spec
  assert.equal(
    volumes.find(({ name }: { name: string }) => name === 'cache').hostPath.path,
    '/var/lib/dsc/cache',
  )
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

test('agents and jobs on Kubernetes have what they need and no more', () => {
  const manifests = readManifests('base/agents.yaml', 'train-flowers.yaml')
  const pod = (kind: string): Pod => manifests.find((manifest) => manifest.kind === kind)?.spec.template.spec
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
