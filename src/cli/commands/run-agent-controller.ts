import { hostname } from 'node:os'
import type { ReviewMeans } from '../../agent/controller/review-pod.js'
import type { ControllerMeans } from '../../agent/controller/run-controller.js'
import { DscError } from '../../failure/dsc-error.js'
import { FreshAnswers } from '../../platform/fresh-answers.js'
import { pause } from '../../platform/poll.js'
import type { CliContext } from '../context.js'

/** Why the controller cannot start, as its user sees it. */
const NO_POD =
  'dsc agent --controller runs in a pod of Kubernetes, with a service account that may watch pods'
/** The certificate of the webhook lies there, if the cluster has one. */
const WEBHOOK = { folder: '/etc/dsc-webhook', port: 9443 }
/** How often to look for a new certificate, in ms. */
const CERTIFICATE_MS = 10_000
/** The webhook knows for this long which nodes have a dataset, ms. */
const KNOWN_MS = 5000

/** `dsc agent --controller`: one process for the cluster, which stages the datasets of waiting pods. Needs no cache. */
export async function runAgentController(context: CliContext): Promise<void> {
  const config = await context.config()
  const [{ findApiServer, readNamespace }, { Controller }, { Leadership }, { readAgentAccess }] =
    await Promise.all([
      import('../../agent/csi/api-server.js'),
      import('../../agent/controller/run-controller.js'),
      import('../../agent/controller/leadership.js'),
      import('../../agent/calls/agent-access.js'),
    ])
  const closing = new AbortController()
  const api = findApiServer(context.environment, closing.signal)
  if (api === undefined)
    throw new DscError('CONFIG_INVALID', NO_POD, { hint: 'apply scripts/kubernetes/controller' })
  const { driver, namespaces, sources } = config.csi
  const note = (sentence: string) => context.report.note(sentence)
  const [namespace, identity] = [readNamespace(), hostname()]
  const leadership = new Leadership({ api, namespace, name: 'dsc-controller', identity, note })
  const means = {
    ...{ api, driver, note },
    record: await context.openRecord(),
    access: await readAgentAccess(config),
    catalog: { declared: config.datasets, rules: { datasets: namespaces, sources } },
    isLeading: () => leadership.isLeading,
  }
  const controller = new Controller(means, context.signal)
  const webhook = serveWebhook(means, context.signal)
  note(`stages datasets for pods with the gate ${driver}/staged and for workloads of Kueue`)
  await Promise.all([leadership.compete(context.signal), controller.run(), webhook])
  await leadership.resign().catch((error: Error) => note(`leader election: ${error.message}`))
  closing.abort('the controller stops')
}

/** Serves the webhook, on every replica, from the moment that there is a certificate for it. */
async function serveWebhook(means: ControllerMeans, signal: AbortSignal): Promise<void> {
  const [{ Webhook }, { reviewPod }] = await Promise.all([
    import('../../agent/controller/webhook.js'),
    import('../../agent/controller/review-pod.js'),
  ])
  const listLeased = async (task: string) => {
    const leases = await means.record.listLeases({ task })
    return [...new Set(leases.map(({ node }) => node))]
  }
  const reviewing = { ...means, listNodes: listNodesOf(means), listLeased }
  const review = (raw: unknown) => reviewPod(reviewing, raw)
  const webhook = new Webhook({ ...WEBHOOK, note: means.note, review })
  while (!signal.aborted) {
    await webhook.renew()
    await pause(CERTIFICATE_MS, signal)
  }
  webhook.stop()
}

/** Lists the nodes that have a dataset, as the record said within the last seconds. */
function listNodesOf({ record }: ControllerMeans): ReviewMeans['listNodes'] {
  const known = new FreshAnswers<readonly string[]>({ freshMs: KNOWN_MS, most: 1000 })
  return (dataset) =>
    known.get(dataset, async () => {
      const copies = await record.listCopies({ dataset }, record.nowMs())
      return copies.filter(({ state, stripe }) => state === 'ready' && !stripe).map(({ node }) => node)
    })
}
