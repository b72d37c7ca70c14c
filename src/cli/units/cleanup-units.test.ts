import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatCron, formatSystemd } from './cleanup-units.js'

const call = { dsc: ['/usr/bin/node', '/opt/dsc/bin/dsc.js'], config: '/etc/dsc/dsc.yaml', user: 'ada' }

test('formatCron cleans up the cache of the configuration that counts, as root', () => {
  assert.match(
    formatCron(call),
    / root \/usr\/bin\/node \/opt\/dsc\/bin\/dsc\.js cleanup --quiet --config \/etc\/dsc\/dsc\.yaml > /,
  )
})

test('formatCron without a configuration cleans up the cache of the user', () => {
  assert.match(formatCron({ ...call, config: undefined }), / ada .* cleanup --quiet > /)
  assert.match(formatSystemd({ ...call, config: undefined }), /\nUser=ada\nExecStart=/)
})

test('formatCron and formatSystemd quote what their readers would take apart', () => {
  const config = `/a b/50%/it's/dsc.yaml`
  assert.ok(formatCron({ ...call, config }).includes(`--config '/a b/50\\%/it'\\''s/dsc.yaml' >`))
  assert.ok(formatSystemd({ ...call, config }).includes(`--config "/a b/50%%/it's/dsc.yaml"\n`))
})
