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
    },
    s5cmd: {
      words: (set, target) => [s5cmd, '--endpoint-url', endpoint, 'cp', `s3://bench/${set}/*`, `${target}/`],
      does: 'neither',
    },
    // What s5cmd would take if its files, too, were to survive a power cut.
    's5cmd+sync': {
      words: (set, target) => [
        ...['sh', '-c', '"$0" --endpoint-url "$1" cp "$2" "$3/" && sync -f "$3"'],
        ...[s5cmd, endpoint, `s3://bench/${set}/*`, target],
      ],
      does: 'no checksums, syncs the file system at the end',
    },
  }
  if (rclone) {
    tools.rclone = {
      words: (set, target) => [
        ...[rclone, 'copy', `:s3:bench/${set}`, target, '--transfers', '64', '--checkers', '64'],
        ...['--s3-provider', 'Other', '--s3-env-auth', '--s3-endpoint', endpoint, '--s3-force-path-style'],
      ],
      does: 'verifies MD5, no fsync',
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
  return tools
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
