// What reads from a server, and the processor time that the server took for it.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cpuSecondsOf } from '../harness/processes.mjs'

const run = promisify(execFile)

/** wrk reads objects of a set for `seconds`, by one thread, over connections that stay. */
export async function readWithWrk(bench, { tools, server, set, seconds }) {
  const script = join(bench.folder, `${server.name}-${set.name}.lua`)
  const paths = server.pathsOf(set)
  writeFileSync(
    script,
    `local paths = {${paths.map((path) => JSON.stringify(path)).join(',')}}
local at = 0
request = function() at = at % #paths + 1; return wrk.format("GET", paths[at]) end
done = function(summary) print(string.format("bytes=%d requests=%d errors=%d microseconds=%d", summary.bytes,
  summary.requests, summary.errors.status + summary.errors.read + summary.errors.connect + summary.errors.timeout,
  summary.duration)) end`,
  )
  const words = ['-t1', `-c${set.connections}`, `-d${seconds}`, '--timeout', '30', '-s', script, server.url]
  return timed(server, async () => {
    const { stdout } = await run(tools.wrk, words)
    const figures = /bytes=(\d+) requests=(\d+) errors=(\d+) microseconds=(\d+)/.exec(stdout)?.slice(1) ?? []
    const [bytes, requests, errors, micros] = figures.map(Number)
    if (errors !== 0 || !(requests > 0)) throw new Error(`wrk on ${server.name}: ${stdout}`)
    return { gigabytes: bytes / 1e9, objects: bytes / set.bytes, seconds: micros / 1e6 }
  })
}

/** s5cmd copies a set into a folder in memory. */
export async function readWithS5cmd(_bench, { tools, server, set }) {
  const target = mkdtempSync('/dev/shm/dsc-bench-gateway-')
  const how = ['--endpoint-url', server.url, '--numworkers', '32']
  try {
    return await timed(server, async () => {
      const beganMs = performance.now()
      const env = { ...process.env, ...server.keys }
      await run(tools.s5cmd, [...how, 'cp', `s3://bench/${set.name}/*`, `${target}/`], {
        env,
        maxBuffer: 2 ** 28,
      })
      const seconds = (performance.now() - beganMs) / 1000
      const found = readdirSync(target, { recursive: true, withFileTypes: true }).filter((entry) =>
        entry.isFile(),
      )
      if (found.length !== set.objects) throw new Error(`s5cmd on ${server.name}: ${found.length} objects`)
      return { gigabytes: (set.objects * set.bytes) / 1e9, objects: set.objects, seconds }
    })
  } finally {
    rmSync(target, { recursive: true, force: true })
  }
}

async function timed(server, read) {
  const before = cpuSecondsOf(server.pid)
  const { gigabytes, objects, seconds } = await read()
  const cpuSeconds = cpuSecondsOf(server.pid) - before
  return {
    objectsPerSecond: objects / seconds,
    gigabytesPerSecond: gigabytes / seconds,
    cpuSeconds,
    gigabytes,
  }
}
