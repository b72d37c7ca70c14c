import { parseCulprit } from '../../model/fed-time.js'
import type { JobTime, JobWait, WaitPlace } from './job-times.js'

/** The words after the share of each place. */
const PLACES: Readonly<Record<WaitPlace, string>> = {
  queue: 'in the queue for staging',
  feed: 'in the feed',
  transform: 'in your own transform',
}

/** Names of culprits in a feed; any other culprit is a storage node. */
const CULPRITS: Readonly<Record<string, string>> = {
  disk: 'this disk slow',
  store: 'the store slow',
  memory: 'its memory full',
  order: 'the order being made',
  feed: 'its own work',
  start: 'its start',
}

/** A second culprit is named if it has this share of the time of its place. */
const NOTABLE_SHARE = 0.25

/** A line for each job: the share of its GPU time that it waited, and for what, in percent of that time. */
export function formatJobs(jobs: readonly JobTime[]): string {
  if (jobs.length === 0) return 'No job used a dataset in this time.'
  return jobs.map((job) => `${job.task}: ${formatJob(job)}`).join('\n')
}

/** `17% of 41 GPU-hours waited: 9 in the queue for staging, 5 in the feed (this disk slow), 3 in your own transform` */
export function formatJob({ gpuMs, waits }: JobTime): string {
  const byPlace = Map.groupBy(waits, ({ place }) => place)
  const parts = [...byPlace]
    .map(([place, own]) => ({ place, own, points: toPoints(own, gpuMs) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
  const total = parts.reduce((sum, { points }) => sum + points, 0)
  const said = parts.map(({ place, own, points }) => `${points} ${PLACES[place]}${nameCulprits(place, own)}`)
  return [`${total}% of ${formatGpuTime(gpuMs)} waited`, ...(said.length > 0 ? [said.join(', ')] : [])].join(
    ': ',
  )
}

function toPoints(waits: readonly JobWait[], gpuMs: number): number {
  return Math.round((100 * waits.reduce((sum, wait) => sum + wait.gpuMs, 0)) / gpuMs)
}

function nameCulprits(place: WaitPlace, waits: readonly JobWait[]): string {
  const total = waits.reduce((sum, { gpuMs }) => sum + gpuMs, 0)
  const named = waits.filter(({ gpuMs }, at) => at === 0 || gpuMs >= NOTABLE_SHARE * total).slice(0, 3)
  const names = named.flatMap(({ culprit }) => (place === 'queue' ? [culprit] : nameCulprit(culprit)))
  return names.length === 0 ? '' : ` (${names.join(', ')})`
}

/** Nothing for the transform of the GPU that waited: its place says it. */
function nameCulprit(name: string): readonly string[] {
  const { culprit, rank } = parseCulprit(name)
  const what = culprit === 'transform' ? [] : [CULPRITS[culprit] ?? `${culprit} slow`]
  return rank === undefined ? what : [[`rank ${rank} behind`, ...what].join(': ')]
}

function formatGpuTime(gpuMs: number): string {
  if (gpuMs < 120_000) return `${(gpuMs / 1000).toFixed(1)} GPU-seconds`
  if (gpuMs < 7_200_000) return `${(gpuMs / 60_000).toFixed(1)} GPU-minutes`
  return `${(gpuMs / 3_600_000).toFixed(gpuMs < 36_000_000 ? 1 : 0)} GPU-hours`
}
