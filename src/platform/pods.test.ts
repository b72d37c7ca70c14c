import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPodUid } from './pods.js'

const UID = '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0'

for (const [what, line, expected] of [
  ['cgroup v1', `4:memory:/kubepods/burstable/pod${UID}/3f2a`, UID],
  [
    'a cgroup of systemd',
    `0::/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-3f2a.scope`,
    UID,
  ],
  [
    'cgroup v2, seen from a container',
    `0::/../../kubepods-besteffort-pod${UID.replaceAll('-', '_')}.slice`,
    UID,
  ],
  [
    'a mount of cgroup v2 with a namespace of its own',
    `99 1 8:1 /var/lib/kubelet/pods/${UID}/etc-hosts /etc/hosts rw - ext4 /dev/sda rw`,
    UID,
  ],
  ['a private cgroup namespace', '0::/', undefined],
  ['a process of the machine', '0::/system.slice/ssh.service', undefined],
  ['a longer number', `0::/pod${UID}0`, undefined],
] as const)
  test(`the uid of a pod is found in ${what}, or not at all`, () => {
    assert.equal(findPodUid(line), expected)
  })
