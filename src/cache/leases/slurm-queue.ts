import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const ANSWER_TIMEOUT_MS = 10_000

/**
 * Ids of the jobs that Slurm still lists on this cluster, in any unfinished state. Undefined if squeue is missing or
 * fails: then nothing may be concluded about any job.
 */
export async function listSlurmJobs(): Promise<ReadonlySet<string> | undefined> {
  const lines = await askSlurm('squeue', '--noheader', '--format=%A', '--all')
  return lines && new Set(lines)
}

/** Node features known to this Slurm; it refuses a job that prefers any other. Undefined if sinfo cannot be asked. */
export async function listSlurmFeatures(): Promise<ReadonlySet<string> | undefined> {
  const lines = await askSlurm('sinfo', '--noheader', '--format=%f', '--all')
  return lines && new Set(lines.flatMap((line) => line.split(',')))
}

/** The nonempty lines of an answer; undefined if the command is missing or fails. */
async function askSlurm(
  command: string,
  ...words: readonly string[]
): Promise<readonly string[] | undefined> {
  try {
    const options = { timeout: ANSWER_TIMEOUT_MS, maxBuffer: 1 << 28 }
    const { stdout } = await promisify(execFile)(command, [...words], options)
    return stdout
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
  } catch {
    return undefined
  }
}
