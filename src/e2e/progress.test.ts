import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { needs } from '../testing/needs.js'
import { startS3Server } from '../testing/s3-server.js'
import { openTerminal } from '../testing/tmux-terminal.js'
import { makeWorld, s3Dataset } from '../testing/world.js'

const skip = needs('tmux', 'tmux')

const server = await startS3Server()
after(() => server.close())
const bucket = await server.makeBucket()
for (let index = 0; index < 8; index++)
  await server.putObject(bucket, `slow/${index}`, Buffer.alloc(64 * 1024, index))
const SLOWLY = { bandwidthLimit: '50kB/s', concurrency: 1 }
const datasets = { slow: s3Dataset(bucket, 'slow/', server.endpoint) }

test('at a terminal a bar fits the width, also after that changes, and nothing of it is left', {
  skip,
}, async (context) => {
  const world = await makeWorld(context, { server, datasets, stage: SLOWLY })
  const terminal = await openTerminal(context, { columns: 100, rows: 10, directory: world.directory })
  const environment = Object.entries(server.environment).map(([name, value]) => `export ${name}='${value}'`)
  await writeFile(
    join(world.directory, 'prepare.sh'),
    `${environment.join('\n')}\n${world.commandLine('prepare', 'slow', '--task', 't')}\n`,
  )
  await terminal.press('clear; sh ./prepare.sh; echo rc=$?', 'Enter')
  const wide = await terminal.waitFor(
    /[█▉▊▋▌▍▎▏]+░+ +\d+ % slow: .* of 512 KiB, .*B\/s, .* left, \d\/8 files/,
  )
  assert.equal(wide.filter((row) => row.includes('%')).length, 1)
  await terminal.resize(50, 10)
  await terminal.waitFor(/^[█▉▊▋▌▍▎▏]+░+ +\d+ % slow: [^,]* of 512 KiB$/m)
  const left = await terminal.waitFor(/rc=0/)
  assert.doesNotMatch(left.join('\n'), /[█░]/)
})

test('a log has a line every 10 %, not one for each moment', async (context) => {
  const world = await makeWorld(context, { server, datasets, stage: SLOWLY })
  const { stderr } = await world.dsc('prepare', 'slow', '--task', 't')
  const lines = stderr.split('\n').filter((line) => line.includes('of 512 KiB'))
  assert.ok(lines.length >= 1 && lines.length <= 10, stderr)
  assert.match(lines.at(-1)!, /^slow: \S+ \S+ of 512 KiB, .*files, from the store$/)
})
