// The servers that gateway.mjs compares, over one folder that versitygw was given through the protocol; dsc over the
// ready copies that it staged from there.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../../../dist/testing/free-port.js'
import { DSC, startServer, startTalking } from '../harness/processes.mjs'
import {
  KEYS,
  s3Dataset,
  startNginx,
  startVersitygw,
  untilUp,
  upload,
  writeSettings,
} from '../harness/stores.mjs'

/** Paths that wrk asks for, of a set with more objects. */
const MAX_PATHS = 2000

/** Each with its URL and process, how wrk names the objects of a set, and whether s5cmd can read from it. */
export async function startServers(bench, { tools, sets }) {
  const versitygw = await startVersitygw(bench, tools)
  upload(bench, sets, { url: versitygw.url, s5cmd: tools.s5cmd })
  const signed = (server, keys) => ({
    ...{ ...server, isS3: true, keys },
    pathsOf: (set) => presign(tools.s5cmd, { keys, url: server.url, set }),
  })
  const plain = (server) => ({ ...server, pathsOf: plainPaths })
  const { forUsers, forKeys, keys } = await startDsc(bench, { sets, endpoint: versitygw.url })
  const rclone = tools.rclone && (await startRclone(bench, tools, versitygw.folder))
  return [
    signed({ ...versitygw, name: 'versitygw' }, KEYS),
    plain({ ...forUsers, name: 'dsc', isS3: true, keys }),
    signed({ ...forKeys, name: 'dsc, signed' }, keys),
    plain({ ...(await startNginx(bench, versitygw.folder)), name: 'nginx' }),
    ...(rclone ? [plain({ ...rclone, name: 'rclone', isS3: true, keys: KEYS })] : []),
  ]
}

async function startRclone(bench, { rclone }, folder) {
  const port = await findFreePort()
  const quiet = ['--config', '/dev/null', '--log-level', 'ERROR', '--vfs-cache-mode', 'off']
  const words = [rclone, 'serve', 's3', '--addr', `127.0.0.1:${port}`, ...quiet, folder]
  const { pid } = startServer(bench, words)
  return untilUp({ pid, url: `http://127.0.0.1:${port}` })
}

/** Two gateways: for users of this machine, whose requests need no key, and one that checks every signature. */
async function startDsc(bench, { sets, endpoint }) {
  const cwd = bench.makeFolder('dsc')
  const datasets = Object.fromEntries(sets.map(({ name }) => [name, s3Dataset(endpoint, `${name}/`)]))
  const configure = (name, users, more) => {
    const agent = { listen: '127.0.0.1:0', gateway: { listen: '127.0.0.1:0', users }, ...more }
    return writeSettings(cwd, datasets, { name, agent })
  }
  writeFileSync(join(cwd, 'token'), 'a token of this benchmark alone', { mode: 0o600 })
  const local = configure('local.yaml', 'all')
  const signed = configure('signed.yaml', [54321], { tokenFile: 'token' })
  const env = { ...process.env, ...KEYS }
  const run = (config, ...words) => {
    const [program, ...rest] = [...DSC, '--config', config, ...words]
    return execFileSync(program, rest, { cwd, env, encoding: 'utf8' })
  }
  for (const { name } of sets) run(local, 'prepare', name, '--task', 'bench')
  const key = JSON.parse(run(signed, 'gateway', 'key', 'bench', '--json'))
  const keys = { ...KEYS, AWS_ACCESS_KEY_ID: key.accessKeyId, AWS_SECRET_ACCESS_KEY: key.secretAccessKey }
  const open = async (config) => {
    const [node, ...dsc] = DSC
    const options = (process.env.DSC_BENCH_NODE_OPTIONS ?? '').split(' ').filter(Boolean)
    const words = [node, ...options, ...dsc, '--config', config, 'agent', '--json']
    const { child, line } = await startTalking(bench, words, { cwd, env })
    return { pid: child.pid, url: JSON.parse(line).gateway }
  }
  return { forUsers: await open(local), forKeys: await open(signed), keys }
}

function plainPaths({ name, objects }) {
  return Array.from({ length: Math.min(objects, MAX_PATHS) }, (_, index) => `/bench/${name}/${index}.bin`)
}

/** The same paths with signatures in their queries, for a client that cannot sign. */
function presign(s5cmd, { keys, url, set }) {
  const input = plainPaths(set).map((path) => `presign --expire 6h s3:/${path}\n`)
  const env = { ...process.env, ...keys }
  const options = { input: input.join(''), env, encoding: 'utf8', maxBuffer: 2 ** 28 }
  const printed = execFileSync(s5cmd, ['--endpoint-url', url, 'run'], options)
  return printed
    .trim()
    .split('\n')
    .map((line) => line.slice(url.length))
}
