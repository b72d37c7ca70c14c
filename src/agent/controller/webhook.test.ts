import assert from 'node:assert/strict'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { askOnce } from '../../http/ask-once.js'
import { makeCertificate } from '../../testing/certificate.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { makeWaitingCluster, rawPod } from '../../testing/waiting-cluster.js'
import { reviewPod } from './review-pod.js'
import { Webhook } from './webhook.js'

const review = (namespace: string, object: object) => ({ request: { uid: 'r', namespace, object } })
const term = (key: string, ...values: string[]) => ({
  weight: 100,
  preference: { matchExpressions: [{ key, values, operator: 'In' }] },
})

/** The steps by which the webhook changes a pod, and its warnings. */
async function decide(means: Parameters<typeof reviewPod>[0], namespace: string, object: object) {
  const { response } = (await reviewPod(means, review(namespace, object))) as {
    readonly response: { readonly allowed: boolean; readonly patch?: string; readonly warnings?: string[] }
  }
  assert.equal(response.allowed, true)
  const steps = response.patch && JSON.parse(Buffer.from(response.patch, 'base64').toString())
  return {
    steps: (steps ?? []) as { readonly path: string; readonly value: unknown }[],
    warnings: response.warnings,
  }
}

test('a new pod prefers nodes by their labels, or by name where a dataset is for some namespaces alone', async (context) => {
  const { means } = await makeWaitingCluster(context, ['gpu-01'])
  const reviewing = { ...means, listNodes: async () => ['gpu-07'], listLeased: async () => [] }
  const terms = (steps: readonly { readonly value: unknown }[]) =>
    (steps[0]!.value as { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: object[] } })
      .nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
  const spec = { schedulingGates: [] }
  const own = await decide(reviewing, 'team-a', rawPod('a', ['flowers', 'birds'], spec))
  assert.deepEqual(terms(own.steps), [term('dsc.io/flowers', 'ready'), term('dsc.io/birds', 'ready')])
  const limited = await decide(reviewing, 'team-b', rawPod('a', ['secret'], spec))
  assert.deepEqual(terms(limited.steps), [term('kubernetes.io/hostname', 'gpu-07')])
  const refused = await decide(reviewing, 'team-a', rawPod('a', ['secret'], spec))
  assert.deepEqual(refused.steps, [])
  assert.match(refused.warnings![0]!, /namespace "team-a" may not read secret/)
  assert.deepEqual((await decide(reviewing, 'team-a', rawPod('a', [], spec))).steps, [])
  const placed = rawPod('a', ['flowers'], { ...spec, nodeName: 'gpu-01' })
  assert.deepEqual((await decide(reviewing, 'team-a', placed)).steps, [])
})

test('a pod of a workload of Kueue prefers most the nodes that were chosen for it', async (context) => {
  const { means } = await makeWaitingCluster(context, ['gpu-01'])
  const asked: string[] = []
  const listLeased = async (task: string) => {
    asked.push(task)
    return ['gpu-03']
  }
  const metadata = {
    annotations: { 'kueue.x-k8s.io/workload': 'job-1' },
    labels: { 'kueue.x-k8s.io/podset': 'main' },
  }
  const pod = { ...rawPod('a', ['flowers'], { schedulingGates: [] }), metadata }
  const { steps } = await decide({ ...means, listNodes: async () => [], listLeased }, 'team-a', pod)
  const { nodeAffinity } = steps[0]!.value as { readonly nodeAffinity: object }
  assert.deepEqual(nodeAffinity, {
    preferredDuringSchedulingIgnoredDuringExecution: [
      term('kubernetes.io/hostname', 'gpu-03'),
      { ...term('dsc.io/flowers', 'ready'), weight: 50 },
    ],
  })
  assert.deepEqual(asked, ['queued:workload:team-a/job-1/main'])
})

test('a pod that asks for it gets the gate, beside those that it has, once', async (context) => {
  const { means } = await makeWaitingCluster(context, ['gpu-01'])
  const reviewing = { ...means, listNodes: async () => [], listLeased: async () => [] }
  const ask = (gates: readonly string[]) => ({
    ...rawPod('a', ['flowers'], { schedulingGates: gates.map((name) => ({ name })) }),
    metadata: { annotations: { 'dsc.io/wait': 'staged' } },
  })
  const { steps } = await decide(reviewing, 'team-a', ask(['other']))
  assert.deepEqual(steps[1], {
    op: 'add',
    path: '/spec/schedulingGates',
    value: [{ name: 'other' }, { name: 'dsc.io/staged' }],
  })
  assert.equal((await decide(reviewing, 'team-a', ask(['dsc.io/staged']))).steps.length, 1)
})

/** Puts a certificate and its key, or one of them, into the folder of a webhook. */
function putCertificate(folder: string, names: readonly string[] = ['tls.crt', 'tls.key']): void {
  const { certFile, keyFile } = makeCertificate(folder)
  if (names.includes('tls.crt')) renameSync(certFile, join(folder, 'tls.crt'))
  if (names.includes('tls.key')) renameSync(keyFile, join(folder, 'tls.key'))
}

/** A webhook that answers with what it is asked, and how to ask it while trusting the certificate in its folder. */
async function makeWebhook(context: TestContext) {
  const folder = await temporaryDirectory(context)
  const told: string[] = []
  const note = (sentence: string) => told.push(sentence)
  const webhook = new Webhook({ folder, port: 0, note, review: async (raw) => ({ raw }) })
  context.after(() => webhook.stop())
  const post = async (path: string, body: string) => {
    const answer = await askOnce(`https://127.0.0.1:${webhook.port}${path}`, {
      ...{ method: 'POST', body, token: undefined, signal: undefined },
      ca: readFileSync(join(folder, 'tls.crt'), 'utf8'),
      ...{ connectTimeoutMs: 5000, silenceMs: 5000 },
    })
    return [answer.statusCode, await text(answer)]
  }
  return { folder, told, webhook, post }
}

test('the webhook answers the API server over TLS, and a mistake with 500', async (context) => {
  const { folder, told, webhook, post } = await makeWebhook(context)
  await webhook.renew()
  assert.equal(webhook.port, undefined, 'no certificate, no webhook')
  putCertificate(folder)
  await webhook.renew()
  assert.deepEqual(await post('/pods?timeout=3s', '{"a":1}'), [200, '{"raw":{"a":1}}'])
  assert.deepEqual(await post('/other', '{}'), [404, ''])
  assert.deepEqual(await post('/pods', '{'), [500, ''])
  assert.match(told.join(), /^webhook: .*JSON/)
})

test('the webhook serves with a renewed certificate once its key is there, too', async (context) => {
  const { folder, told, webhook, post } = await makeWebhook(context)
  putCertificate(folder, ['tls.crt'])
  writeFileSync(join(folder, 'tls.key'), 'half a')
  await webhook.renew()
  assert.equal(webhook.port, undefined)
  putCertificate(folder)
  await webhook.renew()
  const { port } = webhook
  assert.deepEqual(await post('/pods', '{}'), [200, '{"raw":{}}'])

  putCertificate(folder, ['tls.crt'])
  await webhook.renew()
  await webhook.renew()
  await assert.rejects(post('/pods', '{}'), 'it still serves with the old one')
  putCertificate(folder)
  await webhook.renew()
  assert.deepEqual(await post('/pods', '{}'), [200, '{"raw":{}}'])
  assert.equal(webhook.port, port, 'it went on listening')
  assert.equal(told.length, 2)
  assert.match(told[0]!, /^webhook: cannot start: /)
  assert.equal(told[1], 'webhook: keeps its old certificate: tls.key is not the key of tls.crt')
})
