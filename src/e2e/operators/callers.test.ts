import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { DSC, killWithTest } from '../../testing/dsc-processes.js'
import { needs, needsRoot } from '../../testing/needs.js'
import { startSshServer } from '../../testing/ssh-server.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { makeWorld, waitFor, writeTree } from '../../testing/world.js'

const PREPARE = [...DSC, 'prepare', 'flowers'].join(' ')

/** What people put before a command. `{}` stands for `dsc prepare flowers`; without it the command follows. */
const WRAPPERS: readonly (string | { readonly as: string; readonly root?: true; readonly prints?: false })[] =
  [
    'env A=1',
    'timeout 60',
    'flock lock',
    '/usr/bin/time -o time.txt',
    'strace -f -o strace.txt',
    'nice',
    'ionice -c 3',
    'nohup',
    'setsid --wait',
    'stdbuf -oL',
    'setpriv --no-new-privs',
    'bash -c "cd .; {}"',
    'bash -c "{}; true"',
    'sh -c "exec {}"',
    'xargs -P 2 -I @ {} < one.txt',
    'parallel --will-cite -q {} ::: --json',
    'script -qec "{}" /dev/null',
    'unbuffer',
    // It prints only what fails.
    { as: 'chronic', prints: false },
    { as: 'sudo', root: true },
    { as: 'su root -c "{}"', root: true },
    { as: 'runuser -u root --', root: true },
    { as: 'sudo -n timeout 60 strace -f -o strace.txt nice', root: true },
  ]

/** Program → its Debian package, where that has another name or is not in every Debian. */
const PACKAGES: Readonly<Record<string, string>> = {
  '/usr/bin/time': 'time',
  chronic: 'moreutils',
  parallel: 'parallel',
  script: 'bsdutils',
  strace: 'strace',
  sudo: 'sudo',
  unbuffer: 'expect',
}

/** A shell that asks for the data, however wrapped, and says who it is. */
const SCRIPTS = {
  'reads $(…)': (call: string) => `DATA=$(${call}); echo caller $$; echo "$DATA"`,
  'reads $(cd x; …)': (call: string) => `DATA=$(cd . && ${call}); echo caller $$; echo "$DATA"`,
  'reads a file': (call: string) => `${call} > path.txt; echo caller $$; cat path.txt`,
}

for (const wrapper of WRAPPERS) {
  const { as, root = false, prints = true } = typeof wrapper === 'string' ? { as: wrapper } : wrapper
  const skip = whyNot(as, root)
  const call = as.includes('{}') ? as.replace('{}', PREPARE) : `${as} ${PREPARE}`
  for (const [how, write] of Object.entries(SCRIPTS)) {
    // `sh -c "…; true"` reads nothing and goes on for all that anybody can see.
    if (as.endsWith('true"') && how === 'reads a file') continue
    // Of subshells each wrapper sees the same: two are enough.
    if (how === 'reads $(cd x; …)' && !/^(timeout|chronic)/.test(as)) continue
    test(`behind ${as} the lease is that of the script that ${how}`, { skip }, async (context) => {
      const { text, holders } = await runScript(context, write(call))
      assert.deepEqual(holders, [numberAfter('caller', text)], text)
      if (prints) assert.match(text, /\/copies\/flowers\//)
    })
  }
}

for (const { name, script } of [
  {
    name: 'python that reads what timeout printed',
    script: `python3 -c 'import os, subprocess, sys; print(subprocess.check_output(["timeout", "60", *sys.argv[1:]], text=True)); print("caller", os.getpid())' ${PREPARE}`,
  },
  {
    name: 'python that asks a shell, and then reads a file',
    script: `python3 -c 'import os, sys; os.system("timeout 60 " + sys.argv[1] + " > path.txt"); print("caller", os.getpid())' "${PREPARE}"`,
  },
  {
    name: 'node that asks timeout',
    script: `${process.execPath} -e 'const { execFileSync } = require("child_process"); console.log(execFileSync("timeout", ["60", ...process.argv.slice(1)], { encoding: "utf8" }), "caller", process.pid)' ${PREPARE}`,
  },
  {
    name: 'perl with backquotes',
    script: `perl -e 'my $path = \`timeout 60 @ARGV\`; print "$path caller $$\\n"' ${PREPARE}`,
  },
]) {
  test(`the lease is that of ${name}`, { skip: whyNot(script, false) }, async (context) => {
    const { text, holders } = await runScript(context, `${script}; true`)
    assert.deepEqual(holders, [numberAfter('caller', text)], text)
  })
}

test('the lease is that of make, whose recipes use the path', {
  skip: whyNot('make', false),
}, async (context) => {
  const makefile = `DATA := $(shell timeout 60 ${PREPARE})\nall:\n\t@echo caller $$PPID\n\t@echo $(DATA)\n`
  const { text, holders } = await runScript(context, 'make -s', { Makefile: makefile })
  assert.deepEqual(holders, [numberAfter('caller', text)], text)
})

test('two subshells in the background have a lease each', async (context) => {
  const one = `( DATA=$(timeout 60 ${PREPARE}); echo caller $BASHPID )`
  const { text, holders } = await runScript(context, `${one} & ${one} & wait`)
  const callers = [...text.matchAll(/caller (\d+)/g)].map((match) => Number(match[1]))
  assert.equal(callers.length, 2, text)
  assert.deepEqual(holders.toSorted(), callers.toSorted())
})

test('in a window of tmux that runs nothing else a lease lasts for its time', {
  skip: whyNot('tmux', false),
}, async (context) => {
  const socket = join(await temporaryDirectory(context), 'tmux')
  const server = `tmux -S ${socket} -f /dev/null new-session -d 'sleep 60'`
  const window = `tmux -S ${socket} new-window -P -F '#{pane_pid}' -c $PWD '${PREPARE}'`
  // tmux leaves some of its children unreaped: a zombie has ended, too.
  const wait = `while read -r _ _ state _ 2>/dev/null < /proc/$pane/stat && [ "$state" != Z ]; do sleep 0.1; done`
  const { holders } = await runScript(context, `${server}; pane=$(${window}); ${wait}`)
  execFileSync('tmux', ['-S', socket, 'kill-server'])
  assertNobody(holders)
})

test('behind ssh a lease lasts for its time', { skip: whyNot('/usr/sbin/sshd', true) }, async (context) => {
  const server = await startSshServer(context)
  const { text, holders, tasks } = await runScript(
    context,
    `DATA=$(${server.command} "cd $PWD && exec ${PREPARE}"); echo "$DATA"`,
  )
  assert.match(text, /\/copies\/flowers\//)
  assertNobody(holders)
  assert.equal(tasks.length, 1)
})

/** Runs a script of bash in a world of its own; returns what it printed, and the processes that hold leases then. */
async function runScript(
  context: Parameters<typeof makeWorld>[0],
  script: string,
  files: Readonly<Record<string, string>> = {},
) {
  const folder = await temporaryDirectory(context)
  await mkdir(join(folder, 'flowers'))
  writeFileSync(join(folder, 'flowers/1.jpg'), 'a rose')
  const world = await makeWorld(context, { datasets: { flowers: { source: `file://${folder}/flowers/` } } })
  await writeTree(world.directory, { 'one.txt': 'one\n', 'script.sh': `${script}\n`, ...files })
  const { finished } = killWithTest(context)(['bash', 'script.sh'], { cwd: world.directory, environment: {} })
  const { stdout, stderr } = await finished
  const leases = await waitFor('a lease', () => {
    const found = world.query<{ holder: string; task: string }>(
      `SELECT holder, task FROM leases WHERE purpose = 'use'`,
    )
    return found.length > 0 && found
  }).catch((error: Error) => assert.fail(`${error.message}\n${stdout}\n${stderr}`))
  return {
    text: stdout + stderr,
    tasks: leases.map(({ task }) => task),
    holders: leases.flatMap(({ holder }) => {
      const { pid } = JSON.parse(holder) as { pid?: number }
      return pid === undefined ? [] : [pid]
    }),
  }
}

/** Without anybody who goes on a lease has no process; in a container its first one may be a shell. */
function assertNobody(holders: readonly number[]): void {
  assert.deepEqual(
    holders.filter((pid) => pid !== 1),
    [],
  )
}

function numberAfter(word: string, text: string): number {
  return Number(new RegExp(`${word} (\\d+)`).exec(text)?.[1])
}

function whyNot(command: string, isForRoot: boolean): string | false {
  const program = command.split(' ')[0]!
  return (isForRoot && needsRoot) || needs(program, PACKAGES[program] ?? 'coreutils')
}
