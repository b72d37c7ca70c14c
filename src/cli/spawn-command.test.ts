import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

/** Runs a script that has `spawnCommand`. Returns what it and all that it has started print. */
function runScript(script: string, wrapper: readonly string[] = []): string {
  const spawning = `import { spawnCommand } from '${new URL('spawn-command.js', import.meta.url)}'\n`
  const words = [...wrapper, process.execPath, '--input-type=module', '-e', spawning + script]
  return execFileSync('/usr/bin/env', words, { encoding: 'utf8' })
}

/** The loader of setpriv fills a pipe, and goes on when this process has long been dead. */
const DIE = `const environment = { ...process.env, LD_DEBUG: 'all' }
spawnCommand('/bin/echo', ['it runs'], { environment })
process.kill(process.pid, 'SIGKILL')`
const READ_LATE = ['sh', '-c', '{ "$@" 2>&1 1>&3 | { sleep 0.5; cat > /dev/null; }; } 3>&1', 'sh']
const WAIT_FOR_NO_CHILD = ['sh', '-c', '"$@" & exec sleep 1', 'sh']

for (const { name, wrapper } of [
  { name: 'is killed', wrapper: READ_LATE },
  { name: 'is killed and nobody waits for it', wrapper: [...READ_LATE, ...WAIT_FOR_NO_CHILD] },
]) {
  test(`a command does not begin after dsc ${name}`, () => {
    assert.equal(runScript(DIE, wrapper), '')
  })
}

test('a command gets its words and its environment as they are', () => {
  const list = `echo "$0" "$@"; tr "\\\\0" "\\\\n" < /proc/$$/environ`
  const script = `const environment = { 'BASH_FUNC_module%%': '() { :; }', A: '1' }
    spawnCommand('/bin/sh', ['-c', '${list}', '--', '-x', 'a b'], { environment })`
  assert.equal(runScript(script), '-- -x a b\nBASH_FUNC_module%%=() { :; }\nA=1\n')
})
