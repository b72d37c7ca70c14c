import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseCaller, type ProcessTree } from './choose-caller.js'

/** A process: its command line, the pipe at its stdout and the pipes that it reads. */
interface Person {
  readonly words: string
  readonly writes?: string
  readonly reads?: string
  readonly executable?: string
}

/** A chain of processes, each the child of the previous one; pids count from 100, and the last process is dsc. */
function family(people: readonly (string | Person)[]): ProcessTree {
  const find = (pid: number): Person | undefined => {
    const person = people[pid - 100]
    return typeof person === 'string' ? { words: person } : person
  }
  return {
    find: (pid) => {
      const person = find(pid)
      const parentPid = pid === 100 ? 0 : pid - 1
      return person && { pid, parentPid, commandLine: person.words.replaceAll(' ', '\0') }
    },
    findExecutable: (pid) => find(pid)?.executable,
    findStdoutPipe: (pid) => find(pid)?.writes,
    holdsReadEnd: (pid, pipe) => find(pid)?.reads === pipe,
  }
}

const DSC = { words: 'node /usr/bin/dsc prepare a', writes: 'p' }
const UNPIPED = 'node /usr/bin/dsc prepare a'
const READING_BASH = { words: 'bash train.sh', reads: 'p' }

for (const { name, line, caller } of [
  // Read through a pipe.
  { name: 'the shell that reads $(dsc)', line: [READING_BASH, DSC], caller: 0 },
  { name: 'the shell, not timeout', line: [READING_BASH, 'timeout 60 dsc prepare a', DSC], caller: 0 },
  { name: 'the shell, not what nobody knows', line: [READING_BASH, 'blorp --run dsc', DSC], caller: 0 },
  {
    name: 'the shell behind three wrappers',
    line: [READING_BASH, 'sudo -u ada dsc', 'timeout 9 dsc', 'strace -f dsc', DSC],
    caller: 0,
  },
  {
    name: 'python that reads its subprocess',
    line: ['bash', { words: 'python3 train.py', reads: 'p' }, DSC],
    caller: 1,
  },
  {
    name: 'a program in Go that reads it',
    line: ['bash', { words: './trainer', reads: 'p' }, DSC],
    caller: 1,
  },
  {
    name: 'the reader, not a script of a shell in between',
    line: [READING_BASH, 'bash ./wrap.sh', 'timeout 60 dsc prepare a', DSC],
    caller: 0,
  },
  {
    name: 'the shell that reads a subshell that reads dsc',
    line: [{ words: 'bash train.sh', reads: 'q' }, { words: 'bash train.sh', reads: 'p', writes: 'q' }, DSC],
    caller: 0,
  },
  {
    name: 'a subshell in the background that reads for itself',
    line: ['bash train.sh', { words: 'bash train.sh', reads: 'p' }, DSC],
    caller: 1,
  },
  {
    name: 'the inner of two scripts, which reads it and is read itself',
    line: [{ words: 'bash outer.sh', reads: 'q' }, { words: 'bash train.sh', reads: 'p', writes: 'q' }, DSC],
    caller: 1,
  },
  {
    name: 'who reads chronic, which reads dsc',
    line: [
      { words: 'bash train.sh', reads: 'q' },
      { words: '/usr/bin/perl /usr/bin/chronic dsc prepare a', reads: 'p', writes: 'q' },
      DSC,
    ],
    caller: 0,
  },
  {
    name: 'the shell above chronic, whose output goes to a file',
    line: ['bash train.sh', { words: '/usr/bin/perl /usr/bin/chronic dsc prepare a', reads: 'p' }, DSC],
    caller: 0,
  },
  {
    name: 'who reads an unknown program that hands on what it reads',
    line: [{ words: 'zsh', reads: 'q' }, { words: 'op run dsc', reads: 'p', writes: 'q' }, DSC],
    caller: 0,
  },
  {
    name: 'the shell where tee reads, which is no ancestor',
    line: ['bash train.sh', 'timeout 60 dsc', DSC],
    caller: 0,
  },
  // Output goes elsewhere.
  { name: 'the script that called', line: ['sshd', 'bash train.sh', UNPIPED], caller: 1 },
  { name: 'a login shell', line: ['sshd', '-bash', UNPIPED], caller: 1 },
  { name: 'make', line: ['bash', 'make stage', 'timeout 60 dsc', UNPIPED], caller: 1 },
  {
    name: "a scheduler's step",
    line: ['condor_startd', 'condor_starter -f', 'timeout 9 dsc', UNPIPED],
    caller: 1,
  },
  { name: 'the shell, not flock', line: ['bash train.sh', 'flock /tmp/l dsc prepare a', UNPIPED], caller: 0 },
  {
    name: 'python under another title',
    line: ['bash', { words: 'trainer: rank 0', executable: '/usr/bin/python3.12' }, 'timeout 9 dsc', UNPIPED],
    caller: 1,
  },
  {
    name: 'the shell, not its subshell, as in (cd x; dsc prepare y)',
    line: ['tmux', 'bash -i', 'bash -i', UNPIPED],
    caller: 1,
  },
  {
    name: 'the process that started npx',
    line: ['bash -i', 'npm exec dsc prepare x', 'sh -c dsc', UNPIPED],
    caller: 0,
  },
  {
    name: 'the process that started npm through node',
    line: ['bash -i', 'node /usr/bin/npm run stage', 'sh -c dsc', UNPIPED],
    caller: 0,
  },
  { name: 'make, though its target is called npm', line: ['bash', 'make npm', UNPIPED], caller: 1 },
  {
    name: 'python, not a shell that runs one command for it',
    line: ['python3 train.py', 'sh -c dsc', UNPIPED],
    caller: 0,
  },
  { name: 'a shell that goes on after it', line: ['cron', 'sh -c dsc;train', UNPIPED], caller: 1 },
  { name: 'the shell that a container began with', line: ['sh train.sh', UNPIPED], caller: 0 },
  // No ancestor outlives dsc.
  { name: 'nobody under cron', line: ['systemd', 'cron -f', UNPIPED], caller: undefined },
  {
    name: 'nobody behind ssh',
    line: ['systemd', 'sshd', { words: 'sshd: ada@notty', reads: 'p' }, DSC],
    caller: undefined,
  },
  { name: 'nobody in a window of tmux', line: ['systemd', 'tmux new-session', UNPIPED], caller: undefined },
] satisfies readonly { name: string; line: readonly (string | Person)[]; caller: number | undefined }[]) {
  test(`the caller is ${name}`, () => {
    const found = chooseCaller(100 + line.length - 1, family(line))
    assert.equal(found === undefined ? undefined : found - 100, caller)
  })
}
