import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { readTokens } from '../agent/server/authorize.js'
import { loadConfig } from '../config/load-config.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const FOLDER = fileURLToPath(new URL('../../scripts/kubernetes', import.meta.url))
/** Examples that need no more than Kubernetes itself; the others are of kinds that others define. */
const BUILT_IN = ['pod', 'notebook', 'job', 'torchrun', 'claim'].map((name) => `examples/${name}.yaml`)

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
  readonly rules?: readonly object[]
  readonly metadata: { readonly name: string; readonly namespace?: string }
  // biome-ignore lint/suspicious/noExplicitAny: each kind has another, which kubernetes-models checks.
  readonly spec?: any
}

/** What a kustomization names: files, and what it makes of them. */
interface Kustomization {
  readonly resources: readonly string[]
  readonly configurations?: readonly string[]
  readonly configMapGenerator?: readonly Generated[]
  readonly secretGenerator?: readonly Generated[]
}

interface Generated {
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
  const { resources } = readKustomization('base')
  const manifests = readManifests(...resources.map((file) => join('base', file)), ...BUILT_IN)
  assert.deepEqual(
    manifests.map(({ kind }) => kind),
    [
      ...['Namespace', 'CSIDriver', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding'],
      ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding', 'DaemonSet'],
      ...['Pod', 'Pod', 'Job', 'Service', 'Job', 'PersistentVolume', 'PersistentVolumeClaim'],
    ],
  )
  await validate(manifests)
})

test('so do those of the controller, whose pods a restricted namespace admits', async () => {
  const { resources } = readKustomization('controller')
  const manifests = readManifests(...resources.map((file) => join('controller', file)))
  await validate(manifests)
  const { spec } = manifests.find(({ kind }) => kind === 'Deployment')!.spec.template
  const { runAsNonRoot, seccompProfile } = spec.securityContext
  assert.deepEqual([runAsNonRoot, seccompProfile], [true, { type: 'RuntimeDefault' }])
  const [{ securityContext: own, envFrom }] = spec.containers
  assert.deepEqual(own, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  assert.deepEqual(envFrom, [{ secretRef: { name: 'dsc-record' } }], 'no keys of the store')
  assert.ok(!spec.volumes.some((volume: object) => 'hostPath' in volume))
})

test('every file that a kustomization names is there, and what pods mount is made by it', () => {
  for (const [folder, names] of [
    ['base', []],
    ['site', ['dsc-config', 'dsc-agents-token', 'dsc-record', 'dsc-s3']],
    ['monitoring', ['dsc-metrics-token']],
    ['controller', []],
    ['webhook', []],
    ['prompt-starts', []],
  ] as const) {
    const {
      resources,
      configurations = [],
      configMapGenerator = [],
      secretGenerator = [],
    } = readKustomization(folder)
    const generators = [...configMapGenerator, ...secretGenerator]
    const named = generators.flatMap(({ files = [], envs = [] }) => [...files, ...envs])
    for (const file of [...resources, ...configurations, ...named.map((each) => each.replace(/^.*=/, ''))])
      assert.ok(existsSync(join(FOLDER, folder, file)), `${folder} names ${file}`)
    assert.deepEqual(
      generators.map(({ name }) => name),
      names,
    )
  }
})

test('the dsc.yaml of the site is one that dsc reads', async (context: TestContext) => {
  const directory = await temporaryDirectory(context)
  const config = await loadConfig({
    explicitPath: join(FOLDER, 'site/dsc.yaml'),
    environment: { XDG_CACHE_HOME: directory },
    workingDirectory: directory,
    homeDirectory: directory,
    version: 'test',
    overrides: {},
  })
  assert.equal(config.record.kind, 'postgres')
  assert.equal(config.agent.listen.host, '0.0.0.0')
})

/** kubectl breaks the base64 of a secret into lines, which Kubernetes takes and its schema does not. */
function joinLines(manifest: Manifest): Manifest {
  if (manifest.kind !== 'Secret') return manifest
  const data = Object.entries(manifest.data ?? {}).map(([key, value]) => [key, value.replaceAll('\n', '')])
  return { ...manifest, data: Object.fromEntries(data) }
}

/**
 * Why a test that renders with kubectl is skipped, or false. CI installs programs from Debian alone, whose kubectl can be
 * too old for inline patches and components: there, too, the test is skipped.
 */
function findObstacle(): string | false {
  const words = ['version', '--client', '--output=json']
  const { status, stdout } = spawnSync('kubectl', words, { encoding: 'utf8' })
  const isRecent = status === 0 && Number.parseInt(JSON.parse(stdout).clientVersion.minor, 10) >= 21
  return !isRecent && 'needs kubectl 1.21 or newer'
}

const skip = findObstacle()

test('kubectl renders the site as manifests that Kubernetes accepts', { skip }, async () => {
  const rendered = execFileSync('kubectl', ['kustomize', join(FOLDER, 'site')], { encoding: 'utf8' })
  const manifests = parseAllDocuments(rendered).map((document) => document.toJS() as Manifest)
  const nameOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name.replace(/-[a-z0-9]{10}$/, '')}`
  assert.deepEqual(manifests.map(nameOf).toSorted(), [
    'CSIDriver dsc.io',
    ...['ClusterRole', 'ClusterRoleBinding'].flatMap((kind) => [
      `${kind} dsc-agent`,
      `${kind} dsc-agent-pods`,
    ]),
    'ConfigMap dsc-config',
    'DaemonSet dsc-agent',
    'Namespace dsc',
    ...['dsc-agents-token', 'dsc-record', 'dsc-s3'].map((name) => `Secret ${name}`),
    'ServiceAccount dsc-agent',
    ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].flatMap((kind) => [
      `${kind} dsc-agent`,
      `${kind} dsc-agent-pods`,
    ]),
  ])
  for (const { kind, metadata } of manifests)
    if (['ConfigMap', 'DaemonSet', 'Secret', 'ServiceAccount'].includes(kind))
      assert.equal(metadata.namespace, 'dsc')
  await validate(manifests.map(joinLines))
  const { volumes } = manifests.find(({ kind }) => kind === 'DaemonSet')!.spec.template.spec
  const config = volumes.find(({ name }: { name: string }) => name === 'config').configMap.name
  assert.match(config, /^dsc-config-[a-z0-9]{10}$/, 'agents restart when it changes')
  assert.equal(
    volumes.find(({ name }: { name: string }) => name === 'cache').hostPath.path,
    '/var/lib/dsc/cache',
  )
})

test('a site with monitoring lets the Prometheus Operator scrape every agent with a token that may only read', {
  skip,
}, async (context) => {
  const directory = await temporaryDirectory(context)
  cpSync(FOLDER, directory, { recursive: true })
  const site = join(directory, 'site')
  appendFileSync(join(site, 'kustomization.yaml'), '  - ../monitoring\n  - ../controller\n  - ../tls\n')
  const rendered = execFileSync('kubectl', ['kustomize', site], { encoding: 'utf8' })
  const manifests = parseAllDocuments(rendered).map((document) => document.toJS() as Manifest)
  const find = (kind: string, name: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name.startsWith(name))
  const monitor = find('PodMonitor', 'dsc-agent')!
  const { template } = find('DaemonSet', 'dsc-agent')!.spec
  const [endpoint] = monitor.spec.podMetricsEndpoints
  assert.equal(monitor.metadata.namespace, 'dsc')
  assert.deepEqual(monitor.spec.selector.matchLabels, template.metadata.labels)
  assert.ok(template.spec.containers[0].ports.some(({ name }: { name: string }) => name === endpoint.port))
  const { name, key } = endpoint.authorization.credentials
  assert.equal(name, find('Secret', 'dsc-metrics-token')!.metadata.name, 'with the hash of its name')
  const tokenFile = join(directory, 'tokens')
  const token = Buffer.from(find('Secret', name)!.data![key]!, 'base64').toString()
  writeFileSync(tokenFile, `the-token-of-the-agents\nread ${token}`)
  const { accepted } = await readTokens(tokenFile)
  assert.deepEqual(accepted[1], { text: token, mayOnlyRead: true }, 'Prometheus trims nothing')
})

interface Volume {
  readonly name: string
  readonly csi?: { readonly driver: string; readonly readOnly: boolean; readonly volumeAttributes: object }
}

/** The pods, wherever in a manifest they are: whatever has volumes. */
function* findPods(value: unknown): Generator<{ readonly volumes: readonly Volume[] }> {
  if (typeof value !== 'object' || value === null) return
  if ('volumes' in value) yield value as { readonly volumes: readonly Volume[] }
  for (const child of Object.values(value)) yield* findPods(child)
}

test('every example brings a dataset by the driver, and nothing of dsc itself', () => {
  const [driver] = readManifests('base/driver.yaml')
  for (const name of readdirSync(join(FOLDER, 'examples'))) {
    const manifests = readManifests(join('examples', name))
    const pods = [...findPods(manifests)]
    const volumes = pods.flatMap((pod) => pod.volumes)
    const claimed = manifests.flatMap(({ spec }) => (spec?.csi ? [{ name: 'data', csi: spec.csi }] : []))
    for (const { csi } of [...volumes, ...claimed]) {
      assert.equal(csi?.driver, driver!.metadata.name, name)
      assert.equal(csi?.readOnly, true, name)
      assert.match(JSON.stringify(csi?.volumeAttributes), /^\{"dataset":"[a-z]+"\}$/, name)
    }
    assert.equal(volumes.length + claimed.length, 1, name)
    assert.doesNotMatch(JSON.stringify(manifests), /secret|hostPath|envFrom/i, name)
  }
})

test('the first pod of the guide runs on any cluster', () => {
  const guide = readFileSync(
    fileURLToPath(new URL('../../docs/start/kubernetes.md', import.meta.url)),
    'utf8',
  )
  const [, path] = /kubectl apply -f my-cluster\/(examples\/\S+)/.exec(guide) ?? []
  const [pod] = readManifests(path!)
  assert.equal(pod!.kind, 'Pod')
  assert.ok(guide.includes(`kubectl logs ${pod!.metadata.name}`))
  for (const { image, resources } of pod!.spec.containers) {
    assert.match(image, /^busybox:/)
    assert.equal(resources, undefined, 'any node has what it asks for')
  }
})

test('agents on Kubernetes have what they need and no more', () => {
  const [agents] = readManifests('base/agents.yaml')
  const { spec } = agents!.spec.template
  const [agent] = spec.containers
  assert.equal(agent.livenessProbe.httpGet.path, '/healthz')
  assert.equal(agent.readinessProbe.httpGet.path, '/readyz')
  assert.equal(agent.securityContext.readOnlyRootFilesystem, true)
  assert.ok(agent.resources.limits.memory)
  assert.equal(spec.securityContext.fsGroup, 10001, 'the agent reads the token of its service account')
  const [role] = readManifests('base/node-access.yaml').filter(({ kind }) => kind === 'ClusterRole')
  const kueue = { verbs: ['get'], resourceNames: ['kueue-manager-config'] }
  assert.deepEqual(role!.rules, [
    { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['events'], verbs: ['create'] },
    { ...kueue, apiGroups: [''], resources: ['configmaps'] },
    {
      ...kueue,
      apiGroups: ['apps'],
      resources: ['deployments'],
      resourceNames: ['kueue-controller-manager'],
    },
  ])
  assert.equal(spec.priorityClassName, 'system-node-critical')
  assert.equal(agents!.spec.updateStrategy.rollingUpdate.maxSurge, 0)
  assert.deepEqual(
    agent.envFrom.map(({ secretRef }: { secretRef: { name: string } }) => secretRef.name),
    ['dsc-record', 'dsc-s3'],
  )
  const pathOf = (path: string) =>
    agent.volumeMounts.find(({ mountPath }: { mountPath: string }) => mountPath === path)
  assert.equal(pathOf('/var/lib/kubelet/pods').mountPropagation, 'Bidirectional')
  for (const folder of ['plugins', 'plugins_registry']) assert.ok(pathOf(`/var/lib/kubelet/${folder}/dsc.io`))
})
