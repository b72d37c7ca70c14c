import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { needs } from '../../testing/needs.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { formatAgentUnit } from './agent-unit.js'

test('the service starts this dsc with the node’s configuration, whatever its path', () => {
  const unit = formatAgentUnit(['/opt/my node/node', '/opt/dsc 100%/dsc.js'])
  assert.match(
    unit,
    /^ExecStart="\/opt\/my node\/node" "\/opt\/dsc 100%%\/dsc\.js" agent --config \/etc\/dsc\/dsc\.yaml$/m,
  )
})

test('systemd finds the service exposed to 2.5 of 10 at most', {
  skip: needs('systemd-analyze', 'systemd'),
}, async (context) => {
  const path = join(await temporaryDirectory(context), 'dsc-agent.service')
  writeFileSync(path, formatAgentUnit(['/bin/true']))
  const { stdout, stderr } = spawnSync('systemd-analyze', ['security', '--offline=true', path], {
    encoding: 'utf8',
  })
  const level = Number(/exposure level for dsc-agent\.service: ([\d.]+)/.exec(stdout)?.[1])
  assert.ok(level <= 2.5, `${level}: ${stdout}${stderr}`)
  assert.match(stdout, /~@privileged .*e\.g\. chown is allowed/, 'for groups of readers; nothing else of it')
  assert.doesNotMatch(stderr, /Unknown|Failed to parse/)
})
