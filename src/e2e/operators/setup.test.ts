import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DSC_IN_SHELL } from '../../testing/dsc-processes.js'
import { needs } from '../../testing/needs.js'
import { BOB, findObstacle } from '../../testing/several-users.js'

const PROGRAM = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))

/** A machine of its own for a script: /etc as here, but written in memory, and an empty /run, /srv and network. */
const MACHINE = `
set -eu
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/etc/new /run/etc/work /srv
mount -t overlay -o lowerdir=/etc,upperdir=/run/etc/new,workdir=/run/etc/work overlay /etc
mount -t tmpfs -o mode=755 tmpfs /srv
ip link set lo up
mkdir /srv/flowers && echo rose >/srv/flowers/a.txt
unset SUDO_USER
cd /srv
dsc() { ${DSC_IN_SHELL} "$@"; }
await_door() { for _ in $(seq 300); do [ ! -S /run/dsc/dsc.sock ] || return 0; sleep 0.1; done; return 1; }
`
/** The node of every test. */
const SETUP = 'dsc setup --yes --cache-root /srv/nvme/dsc --dataset flowers=./flowers'

/**
 * systemd as far as `dsc setup` asks for it: it starts what the unit says, as its user, in a folder made for it. The
 * sandbox is measured beside the unit.
 */
const SYSTEMD = `
mkdir -p /srv/bin /run/systemd/system
cat >/srv/bin/systemctl <<'SYSTEMCTL'
#!/bin/sh
echo "$*" >>/srv/calls
unit=/etc/systemd/system/dsc-agent.service
case "$1 $2" in
'--quiet is-'*) [ -e /srv/started ] ;;
'enable --now')
  touch /srv/started
  install -d -o dsc -g dsc /run/dsc
  eval "exec setpriv --reuid dsc --regid dsc --clear-groups $(sed -n 's/^ExecStart=//p' $unit)" </dev/null >/srv/log 2>&1 &
  ;;
esac
SYSTEMCTL
chmod +x /srv/bin/systemctl
PATH=/srv/bin:$PATH
`

const skip = whyNot()

function whyNot(): string | false {
  const obstacle = findObstacle() || needs('ip', 'iproute2') || needs('useradd', 'passwd')
  if (obstacle) return obstacle
  if (statSync(PROGRAM).uid !== 0) return `root's service would run ${PROGRAM}, which is another user's`
  const { status, stderr } = runOnMachine('true')
  return status !== 0 && `no machine of its own can be made here: ${stderr}`
}

function runOnMachine(script: string): SpawnSyncReturns<string> {
  const words = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', 'bash', '-c']
  return spawnSync('unshare', [...words, MACHINE + script], { encoding: 'utf8', timeout: 120_000 })
}

/** What a script prints on such a machine: parts, each behind a line `== name`. */
function readParts(script: string): Readonly<Record<string, string>> {
  const { status, stdout, stderr } = runOnMachine(script)
  assert.equal(status, 0, `${stdout}${stderr}`)
  const parts = stdout.split(/^== /m).slice(1)
  return Object.fromEntries(
    parts.map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1)]),
  )
}

test('one command makes a node that users share; run again it changes nothing', { skip }, () => {
  const parts = readParts(`${SYSTEMD}
    echo == would; ${SETUP} --dry-run; ls /etc/dsc 2>&1 || true
    echo == first; ${SETUP}
    echo == unit; cat /etc/systemd/system/dsc-agent.service.d/*
    before="$(ls -l --full-time /etc/dsc/* /etc/systemd/system/dsc-agent.service*)"
    echo == second; ${SETUP}
    [ "$before" = "$(ls -l --full-time /etc/dsc/* /etc/systemd/system/dsc-agent.service*)" ]
    echo == calls; grep -v quiet /srv/calls
    echo == user; cd / && setpriv --reuid daemon --regid daemon --clear-groups sh -c '${DSC_IN_SHELL} prepare flowers --task t'
    stat -c %U /srv/nvme /srv/nvme/dsc
  `)
  const steps = ['the user dsc', '/srv/nvme/dsc for dsc']
  const files = [
    '/etc/dsc/dsc.yaml',
    '/etc/systemd/system/dsc-agent.service',
    '/etc/systemd/system/dsc-agent.service.d/folders.conf',
  ]
  const start = 'the service, now and at each boot'
  const listed = (words: readonly [string, string, string]) => [
    ...steps.map((step) => `${words[0]} ${step}`),
    ...files.map((file) => `${words[1]} ${file}`),
    `${words[2]} ${start}`,
  ]
  const wouldLines = [...listed(['would make', 'would write', 'would start'])]
  assert.deepEqual(parts.would?.split('\n').slice(0, 6), wouldLines)
  assert.match(parts.would!, /cannot access '\/etc\/dsc'/)
  assert.deepEqual(parts.first?.split('\n').slice(0, 6), listed(['made', 'wrote', 'started']))
  for (const seen of [parts.first!, parts.second!]) {
    assert.match(seen, /^as daemon: dsc status --plain\nNODE .*\n.*\/srv\/nvme\/dsc$/m)
    assert.match(seen, /^as daemon: dsc prepare flowers --plan\nflowers: 1 file, 5 B/m)
  }
  assert.match(parts.second!, /^nothing to change: this node is set up\n/)
  assert.equal(parts.unit, '[Service]\nReadWritePaths=/srv/nvme/dsc\n')
  assert.equal(parts.calls, 'daemon-reload\nenable --now dsc-agent.service\n')
  assert.match(parts.user!, /^\/srv\/nvme\/dsc\/copies\/flowers\/.*\nroot\ndsc\n$/)
})

test('without systemd it says what a supervisor runs, and what stands is never written over', {
  skip,
}, () => {
  const parts = readParts(`
    echo == first; ${SETUP}
    supervised="$(dsc setup --json | sed 's/.*"supervisor":"\\([^"]*\\)".*/\\1/')"
    echo '# ours' >>/etc/dsc/dsc.yaml
    sh -c "$supervised" >/srv/log 2>&1 &
    await_door
    echo == second; ${SETUP}
    echo == who; ps -o user= -p $!
    echo == other; dsc setup --yes --cache-root /srv/other 2>&1 || echo "exit $?"
    tail -1 /etc/dsc/dsc.yaml; ls -d /srv/other 2>&1 || true
    kill $!; wait $! || true
  `)
  assert.match(
    parts.first!,
    /\n {2}install -d -o dsc -g dsc \/run\/dsc && exec .* agent --config \/etc\/dsc\/dsc\.yaml\n$/,
  )
  assert.match(parts.second!, /^nothing to change: this node is set up\n\nas daemon: dsc status/)
  assert.equal(parts.who, 'dsc\n', 'the service has given up root')
  assert.match(
    parts.other!,
    /stays as it is\. cache\.root: expected \/srv\/other, found \/srv\/nvme\/dsc\n {2}try: edit it/,
  )
  assert.match(parts.other!, /exit 2\n# ours\n.*cannot access '\/srv\/other'/)
})

test('at a terminal it asks three questions, and none once the node has its dsc.yaml', { skip }, () => {
  const asked = `script -qec "${DSC_IN_SHELL} setup" /dev/null 2>&1`
  const parts = readParts(`
    echo == first; printf '/srv/nvme/dsc\\n120\\n70\\nflowers=./flowers\\n' | ${asked}
    echo == written; grep -E '^  (root|maxPercent|flowers):' /etc/dsc/dsc.yaml
    echo == second; ${asked} </dev/null
  `)
  assert.match(parts.first!, /Folder for the copies \[.+\]: /)
  assert.match(parts.first!, /expected a percentage above 0 and up to 100, found "120"/)
  assert.match(parts.first!, /Datasets, as name=URL name=URL \[none\]: /)
  assert.match(
    parts.written!,
    /^ {2}root: \/srv\/nvme\/dsc\n {2}maxPercent: 70 .*\n {2}flowers: file:\/\/\/srv\/flowers\n$/,
  )
  assert.match(parts.second!, /^nothing to change: this node is set up/)
})

test('it refuses who is not root, and folders and programs that others may write', { skip }, () => {
  const refused = (words: string) => `${words} 2>&1 || echo "exit $?"`
  const parts = readParts(`
    echo == user; ${refused(`setpriv --reuid ${BOB.uid} --regid ${BOB.gid} --clear-groups ${DSC_IN_SHELL} setup`)}
    mkdir -p /srv/full /srv/open; echo x >/srv/full/x; chmod 777 /srv/open
    echo == full; ${refused('dsc setup --yes --cache-root /srv/full')}
    echo == open; ${refused('dsc setup --yes --cache-root /srv/open/dsc')}
    mkdir /run/bin /run/work
    mount -t overlay -o "lowerdir=$(dirname '${PROGRAM}'),upperdir=/run/bin,workdir=/run/work" overlay "$(dirname '${PROGRAM}')"
    chmod 777 "$(dirname '${PROGRAM}')"
    echo == program; mkdir -p /run/systemd/system; ${refused('dsc setup --yes --cache-root /srv/a')}
    echo == words; ${refused('dsc setup --yes --cache-root /srv/a --dataset flowers')}
    ls /etc/dsc 2>&1 || true
  `)
  assert.match(parts.user!, /expected root, found uid \d+\n {2}try: sudo dsc setup.*\nexit 3\n/)
  assert.match(
    parts.full!,
    /\/srv\/full belongs to uid 0 and has files.*\n {2}try: sudo chown -R dsc:dsc \/srv\/full/,
  )
  assert.match(
    parts.open!,
    /\/srv\/open\/dsc lies in \/srv\/open, where everybody may write.*\n {2}try: .*\nexit 3\n/,
  )
  assert.match(
    parts.program!,
    /the service would run .*, which lies in .*, where everybody may write\n {2}try: install dsc .*\nexit 3\n$/,
  )
  assert.match(
    parts.words!,
    /expected name=URL, such as .*, found "flowers"\n(.*\n)?exit 2\nls: .*\/etc\/dsc/,
  )
})
