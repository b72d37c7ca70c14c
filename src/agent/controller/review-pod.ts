import { z } from 'zod'
import type { Dataset } from '../../model/dataset.js'
import { type NodePreference, preferLabels, preferNodes } from '../../policy/prefer-nodes.js'
import type { Catalog } from '../csi/choose-dataset.js'
import { isLabelName } from '../csi/plan-labels.js'
import { findDatasets, type VolumeMeans } from './find-datasets.js'
import { addPreferences, describeRefusedVolume, OTHERS_WEIGHT } from './gated-pods.js'
import { podSpec } from './pod-needs.js'
import { formatQueuedTask } from './queued-lease.js'

const review = z.object({
  request: z.object({
    uid: z.string(),
    namespace: z.string(),
    object: z.object({
      metadata: z.object({
        annotations: z.record(z.string(), z.string()).default({}),
        labels: z.record(z.string(), z.string()).default({}),
      }),
      spec: podSpec.extend({
        nodeName: z.string().optional(),
        schedulingGates: z.array(z.object({ name: z.string() })).default([]),
      }),
    }),
  }),
})

type Reviewed = z.output<typeof review>['request']['object']

/** Where the webhook looks volumes up, and which nodes have a dataset. */
export interface ReviewMeans extends VolumeMeans {
  readonly listNodes: (dataset: string) => Promise<readonly string[]>
  /** The nodes where a waiting job has leases. */
  readonly listLeased: (task: string) => Promise<readonly string[]>
}

/**
 * Answers the review of a new pod: adds a preference for nodes that have its datasets and, if the pod has the annotation
 * `<driver>/wait: staged`, the gate. It never refuses a pod: the mount does, and here its reason is a warning. Throws a
 * ZodError for anything but the review of a pod.
 */
export async function reviewPod(means: ReviewMeans, raw: unknown): Promise<object> {
  const { uid, namespace, object } = review.parse(raw).request
  const answer = (response: object) => ({
    ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
    response: { uid, allowed: true, ...response },
  })
  let datasets: readonly Dataset[]
  try {
    datasets = await findDatasets(means, namespace, object.spec)
  } catch (error) {
    const warning = describeRefusedVolume(error)
    if (warning === undefined) throw error
    return answer({ warnings: [warning.slice(0, 250)] })
  }
  const steps = await planSteps(means, namespace, object, datasets)
  if (steps.length === 0) return answer({})
  const patch = Buffer.from(JSON.stringify(steps)).toString('base64')
  return answer({ patchType: 'JSONPatch', patch })
}

async function planSteps(
  means: ReviewMeans,
  namespace: string,
  { metadata, spec }: Reviewed,
  datasets: readonly Dataset[],
) {
  if (datasets.length === 0 || spec.nodeName !== undefined) return []
  const chosen = await preferChosen(means, namespace, metadata)
  const others = await Promise.all(
    datasets.map(({ name }) => preferDataset(means, name, chosen && OTHERS_WEIGHT)),
  )
  const preferred = [chosen, ...others].filter((each) => each !== undefined)
  const affinity = preferred.length > 0 ? addPreferences(spec.affinity, preferred) : spec.affinity
  const gate = `${means.driver}/staged`
  const isAsked = metadata.annotations[`${means.driver}/wait`] === 'staged'
  const gates = spec.schedulingGates
  const mustAdd = isAsked && gates.every(({ name }) => name !== gate)
  return [
    ...(affinity === spec.affinity ? [] : [{ op: 'add', path: '/spec/affinity', value: affinity }]),
    ...(mustAdd ? [{ op: 'add', path: '/spec/schedulingGates', value: [...gates, { name: gate }] }] : []),
  ]
}

/** Prefers the nodes that the controller chose for the pod's workload, if Kueue has made the pod. */
async function preferChosen(
  { listLeased }: ReviewMeans,
  namespace: string,
  { annotations, labels }: Reviewed['metadata'],
): Promise<NodePreference | undefined> {
  const workload = annotations['kueue.x-k8s.io/workload']
  const podSet = labels['kueue.x-k8s.io/podset']
  if (workload === undefined || podSet === undefined) return undefined
  return preferNodes(await listLeased(formatQueuedTask('workload', namespace, `${workload}/${podSet}`)))
}

/** Prefers nodes by the label that agents keep true, or by their names where the dataset has none. */
async function preferDataset(
  { catalog, driver, listNodes }: ReviewMeans,
  dataset: string,
  weight: number | undefined,
): Promise<NodePreference | undefined> {
  if (hasLabel(catalog, dataset)) return preferLabels({ [`${driver}/${dataset}`]: ['ready'] }, weight)
  return preferNodes(await listNodes(dataset), weight)
}

/** Whether agents name this dataset in labels of their nodes. */
function hasLabel({ declared, rules }: Catalog, dataset: string): boolean {
  const isForAll = !Object.hasOwn(rules.datasets, dataset)
  return isForAll && declared.some(({ name }) => name === dataset) && isLabelName(dataset)
}
