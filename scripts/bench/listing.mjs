// `npm run bench:listing`: how long a million keys take to be listed, by dsc (into the manifest of `prepare --plan`),
// s5cmd and the AWS CLI, in turn, from a server on loopback that has only keys (listing-server.mjs).
// Options: --rounds 3 --keys 1000000 --delay 30 (ms before each answer) --layouts flat,folders --tools dsc,s5cmd,aws
// --write (docs/benchmarks/listing.md)
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from './read-options.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    rounds: { type: 'string', default: '3' },
    keys: { type: 'string', default: '1000000' },
    delay: { type: 'string', default: '30' },
    layouts: { type: 'string', default: 'flat,folders' },
    tools: { type: 'string', default: 'dsc,s5cmd,aws' },
    write: { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const keys = Number(values.keys)
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const peers = Object.fromEntries(
  execFileSync('scripts/bench-peers.sh', { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
    .trim()
    .split('\n')
    .map((line) => line.split('=')),
)
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('listing-server.mjs', import.meta.url)), values.keys, values.delay],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)

/** How each tool lists a bucket, and how many keys its output says there are. */
const TOOLS = {
  dsc: {
    words: (layout) => [process.execPath, DSC, 'prepare', layout, '--plan', '--json'],
    count: (output) => JSON.parse(output).files,
    does: 'checks keys, computes the version, fills the manifest database',
  },
  s5cmd: {
    words: (layout, endpoint) => [peers.s5cmd, '--endpoint-url', endpoint, 'ls', `s3://${layout}/*`],
    count: countLines,
    does: 'prints',
  },
  aws: {
    words: (layout, endpoint) => [
      peers.aws,
      '--endpoint-url',
      endpoint,
      's3',
      'ls',
      '--recursive',
      `s3://${layout}/`,
    ],
    count: countLines,
    does: 'prints',
  },
}

try {
  const endpoint = `http://127.0.0.1:${await readPort()}`
  const layouts = values.layouts.split(',')
  const tools = values.tools.split(',').filter((tool) => tool === 'dsc' || peers[tool])
  writeFileSync(
    join(workspace, 'dsc.yaml'),
    `record: sqlite://${workspace}/record.db\ncache: { root: ${workspace}/cache }\ndatasets:\n${layouts
      .map(
        (layout) =>
          `  ${layout}: { source: 's3://${layout}/', endpoint: '${endpoint}', region: us-east-1, pathStyle: true }\n`,
      )
      .join('')}`,
  )
  const results = []
  for (const layout of layouts)
    for (let round = 0; round < rounds; round++)
      for (const tool of tools) {
        const result = { layout, tool, ...measure(tool, layout, endpoint) }
        results.push(result)
        process.stderr.write(`${layout} round ${round + 1} ${tool}: ${result.seconds.toFixed(2)} s\n`)
      }
  const text = format(results, layouts, tools)
  process.stdout.write(text)
  if (values.write) writeFileSync('docs/benchmarks/listing.md', `# Listing a million keys\n\n${text}`)
} finally {
  server.kill()
  rmSync(workspace, { recursive: true, force: true })
}

function readPort() {
  return new Promise((resolve) => server.stdout.once('data', (line) => resolve(Number(line))))
}

function measure(tool, layout, endpoint) {
  const [program, ...words] = TOOLS[tool].words(layout, endpoint)
  const outputPath = join(workspace, 'output')
  const output = openSync(outputPath, 'w')
  const start = performance.now()
  const { status, stderr } = spawnSync('/usr/bin/time', ['-f', 'used=%U %S %M', program, ...words], {
    cwd: workspace,
    env: environment(),
    encoding: 'utf8',
    stdio: ['ignore', output, 'pipe'],
  })
  const seconds = (performance.now() - start) / 1000
  closeSync(output)
  if (status !== 0) throw new Error(`${tool} on ${layout} ended with ${status}: ${stderr.slice(-2000)}`)
  const [, user, system, rss] = /used=(\S+) (\S+) (\S+)/.exec(stderr)
  const found = TOOLS[tool].count(readFileSync(outputPath, 'utf8'))
  if (found !== keys) throw new Error(`${tool} on ${layout} found ${found} of ${keys} keys`)
  return { seconds, cpuSeconds: Number(user) + Number(system), rssMiB: Number(rss) / 1024 }
}

function countLines(output) {
  return output.split('\n').length - 1
}

function format(results, layouts, tools) {
  const version = (program, ...words) =>
    `${spawnSync(program, words, { encoding: 'utf8' }).stdout}`.split('\n')[0]
  const peerVersions = [
    ...(tools.includes('s5cmd') ? [`s5cmd ${version(peers.s5cmd, 'version')}`] : []),
    ...(tools.includes('aws') ? [version(peers.aws, '--version')] : []),
  ]
  const text = [
    `${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)} at the end; node ${[process.versions.node, ...peerVersions].join(', ')}.`,
    `${keys.toLocaleString('en')} keys of a server on the same processors, which makes them up and answers ${values.delay} ms late. ${rounds} rounds, tools in turn: median (least–most). Command: \`npm run bench:listing -- --rounds ${rounds} --keys ${keys} --delay ${values.delay} --layouts ${values.layouts} --tools ${tools.join(',')} --write\`\n`,
    '| layout | tool | seconds | CPU seconds | peak MiB | keys/s | beside listing |',
    '|---|---|---|---|---|---|---|',
  ]
  for (const layout of layouts)
    for (const tool of tools) {
      const runs = results.filter((result) => result.layout === layout && result.tool === tool)
      const seconds = runs.map((run) => run.seconds)
      const middle = median(seconds)
      text.push(
        `| ${layout} | ${tool} | ${middle.toFixed(1)} (${Math.min(...seconds).toFixed(1)}–${Math.max(...seconds).toFixed(1)}) | ${median(runs.map(({ cpuSeconds }) => cpuSeconds)).toFixed(1)} | ${median(runs.map(({ rssMiB }) => rssMiB)).toFixed(0)} | ${Math.round(keys / middle).toLocaleString('en')} | ${TOOLS[tool].does} |`,
      )
    }
  return `${text.join('\n')}\n`
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}

function environment() {
  const { AWS_CA_BUNDLE: _, AWS_PROFILE: __, ...inherited } = process.env
  return {
    ...inherited,
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'bench-secret',
    AWS_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  }
}
