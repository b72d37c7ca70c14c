import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { appendFileSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../config/load-config.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CHART = join(ROOT, 'scripts/kubernetes')
const BUILT = join(
  process.env.DSC_TEST_HELM ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'dsc-test/helm'),
  'helm',
)
const HELM = existsSync(BUILT) ? BUILT : 'helm'
const skip = spawnSync(HELM, ['version']).status !== 0 && 'needs Helm: scripts/helm.sh builds it'

interface Manifest {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: as for spec.
  readonly webhooks?: any
  readonly data?: Readonly<Record<string, string>>
  // biome-ignore lint/suspicious/noExplicitAny: each kind has another, which the apiserver checks.
  readonly spec?: any
}

const parseManifests = (text: string): readonly Manifest[] =>
  parseAllDocuments(text).flatMap((document) => (document.contents ? [document.toJS() as Manifest] : []))

/** The name of an object among those of a release: its kind, with the part that it belongs to if that may be absent. */
const keyOf = ({ kind, metadata }: Manifest) => {
  const part = /^dsc-(?:agent-)?(controller|pods)$/.exec(metadata.name)?.[1]
  return part ? `${kind} ${part}` : kind
}

/** The objects of a release with these values, by `keyOf`. */
async function render(
  context: TestContext,
  values: object,
  namespace = 'dsc',
): Promise<ReadonlyMap<string, Manifest>> {
  const file = join(await temporaryDirectory(context), 'values.json') // JSON is YAML, too
  writeFileSync(file, JSON.stringify(values))
  execFileSync(HELM, ['lint', '--quiet', '--strict', CHART, '--values', file])
  const words = ['template', 'dsc', CHART, '--namespace', namespace, '--values', file]
  const manifests = parseManifests(execFileSync(HELM, words, { encoding: 'utf8' }))
  return new Map(manifests.map((each) => [keyOf(each), each]))
}

test('the chart has the version of dsc', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
  assert.deepEqual([chart.version, chart.appVersion], [version, version])
})

const needsKubectl =
  spawnSync('kubectl', ['kustomize', join(CHART, 'site')]).status !== 0 && 'needs kubectl 1.21'

test('Helm renders the objects that kustomize does', { skip: skip || needsKubectl }, async (context) => {
  const config = parse(readFileSync(join(CHART, 'site/dsc.yaml'), 'utf8'))
  const rendered = await render(context, {
    ...{ config, controller: { enabled: true, webhook: 'cert-manager' } },
    nodeSelector: { 'nvidia.com/gpu.present': 'true' },
  })
  const copy = await temporaryDirectory(context)
  cpSync(CHART, copy, { recursive: true })
  const site = join(copy, 'site/kustomization.yaml')
  appendFileSync(site, '  - ../controller\n  - ../webhook\n  - ../webhook/cert-manager\n')
  const kustomized = execFileSync('kubectl', ['kustomize', join(copy, 'site')], { encoding: 'utf8' })
  const manifests = parseManifests(kustomized.replaceAll(/(: dsc-[a-z0-9-]+)-[a-z0-9]{10}$/gm, '$1'))
  for (const key of ['Deployment controller', 'ClusterRole pods'])
    assert.ok(manifests.some((each) => keyOf(each) === key))
  for (const manifest of manifests) {
    const { kind } = manifest
    if (kind === 'Secret' || kind === 'Namespace') assert.ok(!rendered.has(kind), 'the user makes it')
    else if (kind === 'ConfigMap') {
      const { agent, ...rest } = parse(rendered.get(kind)!.data!['dsc.yaml']!)
      const { csi, ...written } = agent
      assert.deepEqual({ ...rest, agent: written }, config)
      assert.deepEqual(csi, { driver: 'dsc.io', kubelet: '/var/lib/kubelet' })
    } else {
      const ours = structuredClone(rendered.get(keyOf(manifest))!)
      const metadata = ours.spec?.template?.metadata
      if (metadata) {
        assert.match(metadata.annotations['dsc.io/config'], /^[0-9a-f]{64}$/)
        delete metadata.annotations
      }
      assert.deepEqual(ours, manifest, kind)
    }
  }
})

test('agents get the certificate in the same places by Helm and by kustomize', {
  skip: skip || needsKubectl,
}, async (context) => {
  const folder = join(await temporaryDirectory(context), 'kubernetes')
  cpSync(CHART, folder, { recursive: true })
  const site = join(folder, 'site/kustomization.yaml')
  writeFileSync(site, readFileSync(site, 'utf8').replace('resources:', 'resources:\n  - ../tls/cert-manager'))
  appendFileSync(site, '  - ../controller\n  - ../tls\n')
  const manifests = parseManifests(
    execFileSync('kubectl', ['kustomize', join(folder, 'site')], { encoding: 'utf8' }),
  )
  const certificate = manifests.find(({ metadata }) => metadata.name === 'dsc-agents')!
  const rendered = await render(context, {
    config: { record: 'postgres://dsc@db/dsc' },
    secrets: { tls: certificate.spec.secretName },
    controller: { enabled: true },
  })
  const placesOf = ({ spec }: Manifest) => {
    const { containers, volumes } = spec.template.spec
    const { env, livenessProbe, readinessProbe, startupProbe, volumeMounts } = containers[0]
    return { env, livenessProbe, readinessProbe, startupProbe, volumeMounts, last: volumes.at(-1) }
  }
  for (const kind of ['DaemonSet', 'Deployment']) {
    const kustomized = manifests.find((each) => each.kind === kind)!
    assert.deepEqual(placesOf(rendered.get(keyOf(kustomized))!), placesOf(kustomized), kind)
    assert.equal(placesOf(kustomized).last.secret.secretName, 'dsc-agents-tls')
  }
  const { livenessProbe } = placesOf(rendered.get('DaemonSet')!)
  assert.equal(livenessProbe.httpGet.scheme, 'HTTPS')
  const { agent } = parse(rendered.get('ConfigMap')!.data!['dsc.yaml']!)
  assert.equal(agent.tls.caFile, '/etc/dsc-tls/ca.crt')
})

test('values reach every place where they count', { skip }, async (context) => {
  const values = {
    image: 'registry.test/dsc:2',
    driver: 'data.test',
    cachePath: '/mnt/nvme',
    kubelet: '/var/lib/k0s/kubelet',
    nodeSelector: { gpu: 'yes' },
    secrets: { record: 'database', metrics: 'scrape' },
    controller: { enabled: true },
    config: { record: 'postgres://dsc@db/dsc', cache: { maxPercent: 40, root: '/elsewhere' } },
  }
  const rendered = await render(context, values, 'storage')
  assert.equal(rendered.get('CSIDriver')!.metadata.name, 'data.test')
  const agents = rendered.get('DaemonSet')!
  const { nodeSelector, containers, initContainers } = agents.spec.template.spec
  assert.deepEqual(nodeSelector, { gpu: 'yes' })
  for (const { image } of [...containers, ...initContainers]) assert.equal(image, 'registry.test/dsc:2')
  const text = JSON.stringify([...rendered.values()])
  for (const old of ['registry.example', '"dsc-record"', '"namespace":"dsc"', '/var/lib/dsc/cache'])
    assert.ok(!text.includes(old), `${old} is left`)
  const places = [
    agents.spec.template.spec,
    rendered.get('ValidatingAdmissionPolicy'),
    rendered.get('ValidatingAdmissionPolicy controller'),
    rendered.get('ValidatingAdmissionPolicy pods'),
  ]
  assert.doesNotMatch(JSON.stringify(places), /dsc\.io|\/var\/lib\/kubelet/)
  const [endpoint] = rendered.get('PodMonitor')!.spec.podMetricsEndpoints
  assert.equal(endpoint.authorization.credentials.name, 'scrape')

  const directory = await temporaryDirectory(context)
  const path = join(directory, 'dsc.yaml')
  writeFileSync(path, rendered.get('ConfigMap')!.data!['dsc.yaml']!)
  const { cache, csi } = await loadConfig({
    explicitPath: path,
    environment: { XDG_CACHE_HOME: directory },
    workingDirectory: directory,
    homeDirectory: directory,
    version: 'test',
    overrides: {},
  })
  assert.equal(cache.root, '/cache', 'where the chart mounts it')
  assert.deepEqual([csi.driver, csi.kubelet], ['data.test', '/var/lib/k0s/kubelet'])
  const changed = await render(
    context,
    { ...values, config: { ...values.config, historyDays: 3 } },
    'storage',
  )
  const hash = (manifest: Manifest) => manifest.spec.template.metadata.annotations['dsc.io/config']
  assert.notEqual(hash(changed.get('DaemonSet')!), hash(agents), 'agents restart')
  const restarts = (release: typeof rendered) => hash(release.get('Deployment controller')!)
  assert.notEqual(restarts(changed), restarts(rendered), 'and so does the controller')
  const off = await render(
    context,
    { ...values, promptStarts: false, controller: { enabled: false } },
    'storage',
  )
  assert.ok(![...off.keys()].some((key) => / (controller|pods)$/.test(key)), 'unless it is off')
})

test('the webhook trusts the certificate that its pods show, of cert-manager or of the chart', {
  skip,
}, async (context) => {
  const config = { record: 'postgres://dsc@db/dsc' }
  const make = (webhook: string) =>
    render(context, { config, driver: 'data.test', controller: { enabled: true, webhook } }, 'storage')
  const signed = await make('self-signed')
  const find = (release: typeof signed) => release.get('MutatingWebhookConfiguration')!
  const [{ name, clientConfig, matchConditions }] = find(signed).webhooks
  assert.equal(name, 'staged.pods.data.test')
  assert.match(matchConditions[0].expression, /'data\.test'/)
  assert.deepEqual(clientConfig.service, { namespace: 'storage', name: 'dsc-webhook', path: '/pods' })
  const { 'tls.crt': own } = signed.get('Secret')!.data!
  assert.equal(clientConfig.caBundle, own)
  const { subjectAltName } = new X509Certificate(Buffer.from(own!, 'base64'))
  assert.equal(subjectAltName, 'DNS:dsc-webhook.storage.svc')

  const managed = await make('cert-manager')
  assert.equal(find(managed).metadata.annotations!['cert-manager.io/inject-ca-from'], 'storage/dsc-webhook')
  assert.deepEqual(managed.get('Certificate')!.spec.dnsNames, ['dsc-webhook.storage.svc'])
  assert.ok(!managed.has('Secret'))
  assert.ok(!(await make('')).has('MutatingWebhookConfiguration'))
})

test('a value that the chart does not know is refused', { skip }, () => {
  const { status, stderr } = spawnSync(HELM, ['template', CHART, '--set', 'cachepath=/mnt'], {
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  assert.match(stderr, /cachepath/)
})
