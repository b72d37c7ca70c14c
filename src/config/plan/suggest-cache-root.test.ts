import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MountCandidate, suggestCacheRoot, suggestMinFree } from './suggest-cache-root.js'

const HOME_CACHE = '/home/u/.cache/dsc'

function mount(
  path: string,
  freeBytes: number,
  more: Partial<MountCandidate> & { kindName?: string } = {},
): MountCandidate {
  return {
    path,
    kind: { name: more.kindName ?? 'ext4', isNetwork: false },
    usage: { capacityBytes: 2 * freeBytes, freeBytes, inodesTotal: 0, inodesFree: 0 },
    isWritable: true,
    ...more,
  }
}
const root = mount('/', 100)

for (const { name, mounts, expected } of [
  { name: 'takes the default on the only disk', mounts: [root], expected: HOME_CACHE },
  {
    name: 'takes the disk with most free space',
    mounts: [root, mount('/data', 150), mount('/nvme', 200)],
    expected: '/nvme/dsc',
  },
  {
    name: 'stays at home when home is largest',
    mounts: [root, mount('/home', 300), mount('/nvme', 200)],
    expected: HOME_CACHE,
  },
  {
    name: 'leaves out what this user cannot write',
    mounts: [root, mount('/nvme', 200, { isWritable: false })],
    expected: HOME_CACHE,
  },
  {
    name: 'leaves out network file systems',
    mounts: [root, mount('/lustre', 900, { kind: { name: 'lustre', isNetwork: true } })],
    expected: HOME_CACHE,
  },
  {
    name: 'leaves out memory',
    mounts: [root, mount('/scratch', 900, { kindName: 'tmpfs' })],
    expected: HOME_CACHE,
  },
  {
    name: 'leaves out parts of the system',
    mounts: [root, mount('/boot', 900), mount('/var/lib/docker/x', 900)],
    expected: HOME_CACHE,
  },
  {
    name: 'takes the first by name of two alike',
    mounts: [root, mount('/b', 200), mount('/a', 200)],
    expected: '/a/dsc',
  },
  {
    name: 'does not take a folder whose name only begins alike',
    mounts: [mount('/home/u/.ca', 300), root],
    expected: '/home/u/.ca/dsc',
  },
  {
    name: 'knows nothing better in a container',
    mounts: [mount('/', 100, { kindName: 'overlay' })],
    expected: undefined,
  },
]) {
  test(`suggestCacheRoot ${name}`, () => {
    assert.equal(suggestCacheRoot(mounts, HOME_CACHE)?.root, expected)
  })
}

for (const [capacityBytes, minFreeBytes] of [
  [200 * 2 ** 30, 10 * 2 ** 30],
  [10 * 2 ** 40, 100 * 2 ** 30],
  [2 ** 30, 51 * 2 ** 20],
] as const) {
  test(`suggestMinFree leaves ${minFreeBytes} of ${capacityBytes} bytes free`, () => {
    assert.equal(suggestMinFree({ capacityBytes }), minFreeBytes)
  })
}
