import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const SQUEUE_TIMEOUT_MS = 10_000

/**
 * Ids of the jobs that Slurm still lists on this cluster, in any state but finished. Undefined when squeue is
 * missing or fails: then nothing may be concluded about any job.
 */
export async function listSlurmJobs(): Promise<ReadonlySet<string> | undefined> {
  try {
    const { stdout } = await promisify(execFile)('squeue', ['--noheader', '--format=%A', '--all'], {
      timeout: SQUEUE_TIMEOUT_MS,
      maxBuffer: 1 << 28,
    })
    return new Set(
      stdout
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    )
  } catch {
    return undefined
  }
}
