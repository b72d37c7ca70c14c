// Fills a record with one invented day of a cluster, always the same: 24 nodes, 26 datasets, 9 users, a busy morning, and
// three things that are wrong. For pictures of what a real cluster would take a day to show.
import { exampleCopy, exampleDataset } from '../../dist/testing/example-copies.js'
import { mulberry32 } from '../seeded-random.mjs'

const GIB = 2 ** 30
const HOUR_MS = 3_600_000
const DATASETS = {
  'imagenet-1k': 148,
  'imagenet-22k': 1120,
  'laion-aesthetic': 2360,
  'coco-2017': 26,
  'kinetics-700': 720,
  'common-voice-17': 84,
  librispeech: 58,
  'fineweb-edu': 940,
  'sa-1b': 1700,
  'gigaspeech-xl': 450,
  'llama-3.1-70b': 132,
  'mistral-7b': 14,
  ade20k: 4,
  cityscapes: 62,
  'webvid-2m': 402,
  'red-pajama': 2100,
  'the-stack-v2': 880,
  voxceleb2: 76,
  'nuscenes-full': 560,
  'waymo-open': 1400,
  'objects-365': 340,
  'places-365': 108,
  'musan-noise': 11,
  'proof-pile-2': 190,
  'open-images-7': 561,
  'habitat-scenes': 44,
}
const NAMES = Object.keys(DATASETS)
const USERS = {
  mira: 'vision',
  wei: 'robotics',
  carlos: 'speech',
  aisha: 'llm',
  priya: 'vision',
  lena: 'llm',
  jonas: 'bio',
  yuki: 'bio',
  sam: 'speech',
}
const NODES = Array.from({ length: 24 }, (_, at) => `gpu-${String(at + 1).padStart(2, '0')}`)

/** @returns {Promise<(seconds: number) => Promise<void>>} moves the downloads on, as if so many seconds had passed */
export async function inventDay(record, { nowMs, url }) {
  const random = mulberry32(7)
  const pick = (list) => list[Math.floor(random() * list.length)]
  const held = new Map(NODES.map((node) => [node, new Set()]))
  for (const [at, node] of NODES.entries()) {
    await saveNode(record, { node, at, nowMs, url })
    while (held.get(node).size < 9) held.get(node).add(NAMES[Math.floor(random() ** 1.6 * NAMES.length)])
    for (const name of held.get(node)) {
      const sizeBytes = DATASETS[name] * GIB
      const readyAtMs = nowMs - (6 + 90 * random()) * HOUR_MS
      const copy = exampleCopy(name, { node, copyId: `${name} ${node}`, version: 'a1b2c3'.padEnd(64, '7') })
      const { referenceCount: _, isBeingStaged: __, ...ready } = copy
      await record.addAdopted(
        {
          ...ready,
          source: exampleDataset(name, { source: `s3://training/${name}/` }),
          chargedBytes: sizeBytes,
          writtenBytes: sizeBytes,
          contentBytes: sizeBytes,
          createdAtMs: readyAtMs - HOUR_MS / 2,
          readyAtMs,
          lastUsedAtMs: readyAtMs,
        },
        readyAtMs,
      )
    }
  }
  for (const node of NODES) await keepInUse(record, { node, names: [...held.get(node)], pick, random, nowMs })
  const events = [
    ...tellDay({ held, pick, random, nowMs }),
    ...tellTroubles({ held, nowMs }),
    ...tellTraining(nowMs),
  ]
  for (const event of events.toSorted((a, b) => a.atMs - b.atMs)) await record.addEvent(event)
  return beginStagings(record, nowMs)
}

function saveNode(record, { node, at, nowMs, url }) {
  return record.saveNode({
    node,
    cacheRoot: '/nvme/dsc',
    policy: { maxDatasets: 14, maxPercent: 85, minFreeBytes: 200 * GIB },
    disk: {
      capacityBytes: 14 * 1024 * GIB,
      freeBytes: (3 + ((at * 5) % 4)) * 1024 * GIB,
      inodesTotal: 90_000_000,
      inodesFree: 71_000_000,
    },
    seenAtMs: nowMs - 3000,
    agent: { url, seenAtMs: node === 'gpu-17' ? nowMs - 12 * 60_000 : nowMs + HOUR_MS },
  })
}

/** Every copy has been used; a third of them no longer are. */
async function keepInUse(record, { node, names, pick, random, nowMs }) {
  for (const dataset of names) {
    const isIdle = random() < 0.35
    const lease = {
      task: `job-${48_000 + Math.floor(900 * random())}`,
      holder: { kind: 'ttl' },
      expiresAtMs: nowMs + (isIdle ? -1 : 8) * HOUR_MS,
      parties: partiesOf(pick(Object.keys(USERS))),
    }
    await record.leaseReady({ dataset, node, lease }, nowMs - (isIdle ? 6 : 5 * random()) * HOUR_MS)
  }
}

function partiesOf(user) {
  return [`user:${user}`, `account:${USERS[user]}`]
}

/** How busy the cluster is: a quiet night, a rush in the morning. `hoursAgo` before the picture, which is in the afternoon. */
function busyness(hoursAgo) {
  const rush = 1.4 * Math.exp(-(((hoursAgo - 5) / 1.3) ** 2))
  const day = hoursAgo < 8 ? 0.8 : hoursAgo < 18 ? 0.12 : 0.55
  return rush + day
}

function tellDay({ held, pick, random, nowMs }) {
  const events = []
  for (let hoursAgo = 23.9; hoursAgo > 0.05; hoursAgo -= 0.011) {
    const busy = busyness(hoursAgo)
    if (random() > busy / 1.6) continue
    const node = pick(NODES)
    const dataset = pick([...held.get(node)])
    const place = {
      node,
      dataset,
      task: `job-${47_000 + Math.floor(1900 * random())}`,
      reason: '',
      detail: {},
    }
    const atMs = nowMs - hoursAgo * HOUR_MS
    const isHit = random() > 0.04 + 0.09 * busy
    const copyId = `${dataset} ${node} ${hoursAgo}`
    const lastingMs = isHit
      ? 0
      : Math.min(hoursAgo * HOUR_MS * 0.9, (0.01 + 0.3 * random() ** 3 * busy) * HOUR_MS)
    if (!isHit) {
      const bytes = DATASETS[dataset] ** 0.72 * 3 * GIB
      const peers = random() < 0.7 ? Math.round(bytes * (0.6 + 0.4 * random())) : 0
      const origins = { storeBytes: bytes - peers, peerBytes: { [pick(NODES)]: peers } }
      events.push({ ...place, copyId, kind: 'staging-started', atMs })
      events.push({
        ...place,
        copyId,
        kind: 'staged',
        atMs: atMs + lastingMs,
        detail: { fetchedBytes: bytes, origins },
      })
      const goneMs = atMs + lastingMs + (2 + 9 * random()) * HOUR_MS
      if (goneMs < nowMs - 60_000)
        events.push({ ...place, copyId, kind: 'evicted', atMs: goneMs, detail: { chargedBytes: bytes } })
    }
    const detail = { isHit, waitedMs: Math.round(lastingMs), contentBytes: DATASETS[dataset] * GIB }
    events.push({ ...place, copyId, kind: 'leased', atMs: atMs + lastingMs, detail })
  }
  return events
}

function tellTroubles({ held, nowMs }) {
  const dataset = [...held.get('gpu-09')][0]
  return [
    {
      atMs: nowMs - 1.75 * HOUR_MS,
      kind: 'damaged',
      node: 'gpu-09',
      dataset,
      copyId: `${dataset} gpu-09`,
      task: null,
      reason: '2 of 14,197 files fail their checksum',
      detail: {},
    },
    {
      atMs: nowMs - 11 * 60_000,
      kind: 'refused',
      node: 'gpu-07',
      dataset: 'laion-5b-index',
      copyId: null,
      task: 'job-48231',
      reason: 'needs 2.31 TiB, has 1.62 TiB: 706 GiB short',
      detail: {},
    },
  ]
}

/** What the feeds of nine jobs of a day tell every half hour; one has a slow storage node in the morning. */
function tellTraining(nowMs) {
  const random = mulberry32(11)
  const told = []
  for (let job = 0; job < 9; job++)
    for (let hoursAgo = 23 - job; hoursAgo > 0.5; hoursAgo -= 0.5) {
      const gpuMs = 8 * 0.5 * HOUR_MS
      const isSlow = job === 2 && hoursAgo < 8 && hoursAgo > 3
      const culprit = isSlow ? 'storage node 3 (gpu-03:7071)' : job % 3 === 0 ? 'transform' : 'store'
      const waits = { [culprit]: Math.round(gpuMs * (isSlow ? 0.6 : 0.08) * random()) }
      const atMs = nowMs - hoursAgo * HOUR_MS
      const detail = { sinceMs: atMs - 0.5 * HOUR_MS, gpus: 8, gpuMs, waits }
      const place = { node: NODES[job], dataset: NAMES[job], copyId: null, task: `job-${47_100 + job}` }
      told.push({ ...place, atMs, kind: 'fed', reason: '', detail })
    }
  return told
}

async function beginStagings(record, nowMs) {
  const wanted = [
    ['laion-400m', 'gpu-21', 1900, 0.41, 520, 3],
    ['sa-1b-masks', 'gpu-12', 610, 0.62, 37, 2],
    ['yodas-2', 'gpu-04', 380, 0.88, 310, 1],
    ['ego4d', 'gpu-15', 1240, 0.18, 940, 1],
    ['fineweb-2', 'gpu-23', 2800, 0.07, 1150, 0],
  ]
  const moving = []
  for (const [at, [name, node, gib, done, mibPerSecond, waiting]] of wanted.entries()) {
    const ask = (task) => ({
      dataset: name,
      node,
      lease: { task, holder: { kind: 'ttl' }, expiresAtMs: nowMs + 8 * HOUR_MS },
      source: exampleDataset(name, { source: `s3://training/${name}/` }),
      origin: 's3',
      directoryOf: (copyId) => `/nvme/dsc/staging/${copyId}`,
      stager: { task, holder: { kind: 'ttl' }, expiresAtMs: nowMs + HOUR_MS },
      isRefresh: false,
    })
    const beganMs = nowMs - (gib * 1024 * done * 1000) / mibPerSecond
    const { copy, stageLeaseId } = await record.joinOrReserve(
      ask(`job-${48_240 + at}`),
      Math.max(beganMs, nowMs - 5 * HOUR_MS),
    )
    for (let job = 0; job < waiting; job += 1)
      await record.joinOrReserve(ask(`job-${48_250 + 10 * at + job}`), nowMs - (3 + 9 * job) * 60_000)
    const bytes = gib * GIB
    const admitted = {
      version: 'b'.repeat(64),
      files: 4200,
      contentBytes: bytes,
      chargedBytes: bytes,
      chargedInodes: 4300,
    }
    const plan = { victims: [], freedBytes: 0, shortfalls: [], evictableBytes: 0, evictableCopies: 0 }
    await record.admit(
      { copyId: copy.copyId, stageLeaseId, ...admitted },
      () => ({ outcome: 'admit', plan }),
      nowMs - 60_000,
    )
    moving.push({
      copyId: copy.copyId,
      stageLeaseId,
      bytes,
      written: done * bytes,
      rate: mibPerSecond * 2 ** 20,
    })
  }
  return async (seconds) => {
    for (const staging of moving) {
      staging.written = Math.min(staging.bytes * 0.99, staging.written + seconds * staging.rate)
      const { copyId, stageLeaseId, written } = staging
      const progress = {
        copyId,
        stageLeaseId,
        writtenBytes: Math.round(written),
        expiresAtMs: nowMs + 2 * HOUR_MS,
      }
      await record.reportProgress(progress, Date.now())
    }
  }
}
