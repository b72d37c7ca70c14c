import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ApiRefusal } from '../../agent/csi/api-server.js'
import { loadConfig } from '../../config/load-config.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { checkKubernetes } from './check-kubernetes.js'

const NODE = '/api/v1/nodes/gpu-01'
const KUEUE = '/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config'
const MANAGER = '/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager'

/** A cluster with these objects, which refuses whatever is a number with it. */
async function check(
  context: TestContext,
  objects: Readonly<Record<string, unknown>>,
  { kubelet, ...settings }: { readonly minFreeBytes?: number; readonly kubelet?: string } = {},
): Promise<Record<string, string>> {
  const directory = await temporaryDirectory(context)
  const kubeletFolder = kubelet ?? join(directory, 'kubelet')
  mkdirSync(join(kubeletFolder, 'pods'), { recursive: true })
  const environment = { DSC_CACHE_ROOT: directory, DSC_NODE: 'gpu-01' }
  const place = { explicitPath: undefined, workingDirectory: directory, homeDirectory: directory }
  const config = await loadConfig({ ...place, environment })
  const csi = { ...config.csi, kubelet: kubeletFolder }
  const cache = { ...config.cache, policy: { ...config.cache.policy, ...settings } }
  const checks = await checkKubernetes(
    { ...config, csi, cache },
    {
      async get(path) {
        const object = objects[path] ?? 404
        if (typeof object === 'number') throw new ApiRefusal(object, 'no')
        return object
      },
      patch: () => assert.fail('doctor changes nothing'),
    },
  )
  return Object.fromEntries(
    checks.map(({ name, status, detail, hint }) => [name, [status, detail, hint].filter(Boolean).join(': ')]),
  )
}

/** A node whose kubelet defends `percent` of a disk of 1000 GiB. */
const nodeWith = (percent: number, taints: readonly object[] = []) => ({
  metadata: {},
  spec: { taints },
  status: {
    capacity: { 'ephemeral-storage': '1000Gi' },
    allocatable: { 'ephemeral-storage': String((1000 - 10 * percent) * 2 ** 30) },
  },
})

test('an agent whose node takes pods, and whose copies leave more free than kubelet wants, is well', async (context) => {
  const checks = await check(context, { [NODE]: nodeWith(10) }, { minFreeBytes: 150 * 2 ** 30 })
  assert.deepEqual(checks, {
    kubernetes: 'ok: node gpu-01 takes pods',
    kubelet: "ok: copies leave 150 GiB free on kubelet's disk; kubelet may evict pods below 100 GiB",
  })
})

test('copies that leave less free than kubelet defends are told, with the setting', async (context) => {
  const { kubelet } = await check(context, { [NODE]: nodeWith(25) }, { minFreeBytes: 299 * 2 ** 30 })
  assert.equal(
    kubelet,
    "warning: copies leave 299 GiB free on kubelet's disk; kubelet may evict pods below 250 GiB: set cache.minFree: 300GiB in dsc.yaml",
  )
})

test('a cache on another disk than kubelet leaves it all the room, whatever minFree says', async (context) => {
  const kubelet = mkdtempSync('/dev/shm/dsc-test-')
  context.after(() => rmSync(kubelet, { recursive: true }))
  const checks = await check(context, { [NODE]: nodeWith(25) }, { minFreeBytes: 1, kubelet })
  assert.deepEqual(Object.keys(checks), ['kubernetes'])
})

test('a node that waits for the driver, is unknown, or may not be read is told, with what to do', async (context) => {
  const tainted = await check(context, { [NODE]: nodeWith(10, [{ key: 'dsc.io/agent-not-ready' }]) })
  assert.match(
    tainted.kubernetes!,
    /^warning: node gpu-01 has the taint dsc\.io\/agent-not-ready: .*its agent$/,
  )
  assert.match((await check(context, {})).kubernetes!, /^failed: node gpu-01: .* 404: no: set DSC_NODE/)
  assert.match(
    (await check(context, { [NODE]: 403 })).kubernetes!,
    /403: no: let the service account .* get nodes/,
  )
})

for (const [what, objects, expected] of [
  [
    'its configuration',
    { [KUEUE]: { data: { a: 'featureGates:\n  TASRespectNodeAffinityPreferred: true\n' } } },
    /^ok/,
  ],
  [
    'an argument',
    { [MANAGER]: { args: ['--feature-gates=X=false,TASRespectNodeAffinityPreferred=true'] } },
    /^ok/,
  ],
  ['all alpha gates', { [KUEUE]: {}, [MANAGER]: { args: ['--feature-gates=AllAlpha=true'] } }, /^ok/],
  [
    'all but this one',
    { [MANAGER]: { args: ['--feature-gates=AllAlpha=true,TASRespectNodeAffinityPreferred=false'] } },
    /^warning: TASRespectNodeAffinityPreferred is not on: .*--feature-gates=TASRespectNodeAffinityPreferred=true/,
  ],
  ['no gate', { [KUEUE]: { data: {} } }, /^warning/],
  ['what may not be read', { [KUEUE]: 403 }, /^skipped: its gates cannot be read: .*403/],
] as const)
  test(`Kueue with ${what} is judged by whether it heeds preferred nodes`, async (context) => {
    const { kueue } = await check(context, { [NODE]: nodeWith(10), ...objects })
    assert.match(kueue!, expected)
  })
