// The tools that stage.mjs runs.
import { execFileSync, spawnSync } from 'node:child_process'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))

/** What a script of `scripts/` built or found: lines `name=path`. */
export function findPrograms(script) {
  const lines = execFileSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return Object.fromEntries(
    lines
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split('=')),
  )
}

/** How each tool that is here copies `s3://bench/<set>/` of `endpoint` into `target`, and what it does beyond copying. */
export function listTools({ s5cmd, rclone, aws }, endpoint) {
  const tools = {
    dsc: {
      words: (set) => [process.execPath, DSC, 'prepare', set, '--task', 'bench'],
      does: 'verifies checksums, fsyncs',
      verifies: true,
    },
    s5cmd: {
      words: (set, target) => [s5cmd, '--endpoint-url', endpoint, 'cp', `s3://bench/${set}/*`, `${target}/`],
      does: 'neither',
    },
  }
  if (rclone) {
    tools.rclone = {
      words: (set, target) => [
        ...[rclone, 'copy', `:s3:bench/${set}`, target, '--transfers', '64', '--checkers', '64'],
        ...['--s3-provider', 'Other', '--s3-env-auth', '--s3-endpoint', endpoint, '--s3-force-path-style'],
      ],
      does: 'verifies MD5 (not of objects uploaded in parts), no fsync',
    }
  }
  if (aws) {
    tools.aws = {
      words: (set, target) => [
        ...[aws, '--endpoint-url', endpoint, 's3', 'cp', '--recursive', '--only-show-errors'],
        ...[`s3://bench/${set}/`, target],
      ],
      does: 'neither',
    }
  }
  return { ...tools, ...makeSafe(tools) }
}

/**
 * The tools that others have, each doing as much as dsc: what arrived is on the disk and was read once for a checksum,
 * by the quickest program that every system has (CRC-32 with carry-less multiplication) on two processors.
 */
function makeSafe(tools) {
  const pass = 'sync -f "$0" && find "$0" -type f -print0 | xargs -0 -n 500 -P 2 cksum >/dev/null'
  const others = Object.entries(tools).filter(([name]) => name !== 'dsc')
  return Object.fromEntries(
    others.map(([name, { words }]) => [
      `${name}, safe`,
      {
        words: (set, target) => ['sh', '-c', `"$@" && ${pass}`, target, ...words(set, target)],
        does: 'syncs the file system, reads everything once for a CRC',
        verifies: true,
      },
    ]),
  )
}

/** The versions of the tools, in words. */
export function describeVersions({ s5cmd, rclone, aws }) {
  const first = (program, ...words) =>
    `${spawnSync(program, words, { encoding: 'utf8' }).stdout}`.split('\n')[0]
  return [
    // Built by `go install`, it does not know its version; the file is named for it.
    basename(s5cmd).replace('-', ' '),
    ...(aws ? [first(aws, '--version')] : []),
    ...(rclone ? [first(rclone, 'version')] : []),
  ].join(', ')
}
