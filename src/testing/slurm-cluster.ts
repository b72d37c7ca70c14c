import { execFile, spawn } from 'node:child_process'
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DSC_IN_SHELL } from './dsc-processes.js'
import { findFreePort } from './free-port.js'
import { needs, needsRoot } from './needs.js'

const SCRIPTS = fileURLToPath(new URL('../../scripts/slurm/', import.meta.url))

/** One real slurmctld and one slurmd on this machine, with the prolog and epilog of scripts/slurm. */
export interface SlurmCluster {
  /** Submits a script and returns the job's id. */
  submit(script: string, ...options: readonly string[]): Promise<string>
  run(command: string, ...words: readonly string[]): Promise<string>
  /** The output of the job. */
  output(jobId: string): Promise<string>
  /** State of a job according to scontrol (`RUNNING`, `COMPLETED`, …); undefined after Slurm has forgotten it. */
  state(jobId: string): Promise<string | undefined>
  /** Environment that points squeue to this Slurm. */
  readonly environment: Readonly<Record<string, string>>
  /** Simulates a power failure: slurmd and every process of its jobs die at once. */
  killNode(): Promise<void>
}

/** Why tests with Slurm are skipped, or false: its daemons need root. */
export const whyNoSlurm: string | false =
  needsRoot ||
  needs('munged', 'munge') ||
  needs('slurmctld', 'slurmctld') ||
  needs('slurmd', 'slurmd') ||
  needs('squeue', 'slurm-client')

/** Slurm's name for this machine. */
export const SLURM_NODE = hostname().split('.')[0]!

/**
 * Starts Slurm in `directory`, with one node without features. `settings` are shell settings for prolog and epilog,
 * besides DSC.
 */
export async function startSlurm(
  context: Pick<TestContext, 'after'>,
  directory: string,
  settings: string,
): Promise<SlurmCluster> {
  for (const name of ['state', 'spool', 'munge', 'scripts']) await mkdir(join(directory, name))
  await chmod(join(directory, 'munge'), 0o700)
  await writeFile(join(directory, 'munge/key'), 'k'.repeat(1024), { mode: 0o400 })
  for (const name of ['prolog.sh', 'epilog.sh']) {
    await copyFile(join(SCRIPTS, name), join(directory, 'scripts', name))
    await chmod(join(directory, 'scripts', name), 0o755)
  }
  // The scripts split DSC at spaces, as an admin may give options; the path of a checkout may have some, this one has none.
  const dsc = join(directory, 'dsc')
  await writeFile(dsc, `#!/bin/sh\nexec ${DSC_IN_SHELL} "$@"\n`, { mode: 0o755 })
  await writeFile(join(directory, 'scripts/settings'), `DSC=${dsc}\n${settings}`)
  const socket = join(directory, 'munge/socket')
  const [controlPort, nodePort] = [await findFreePort(), await findFreePort()]
  const host = SLURM_NODE
  const configuration = join(directory, 'slurm.conf')
  await writeFile(
    configuration,
    `ClusterName=dsctest
SlurmctldHost=${host}(127.0.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=${socket}
SlurmUser=root
SlurmctldPort=${controlPort}
SlurmdPort=${nodePort}
StateSaveLocation=${directory}/state
SlurmdSpoolDir=${directory}/spool
SlurmctldPidFile=${directory}/slurmctld.pid
SlurmdPidFile=${directory}/slurmd.pid
SlurmctldLogFile=${directory}/slurmctld.log
SlurmdLogFile=${directory}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
Prolog=${directory}/scripts/prolog.sh
Epilog=${directory}/scripts/epilog.sh
PrologFlags=Alloc
SlurmdTimeout=5
KillWait=1
ReturnToService=2
NodeName=${host} NodeAddr=127.0.0.1 CPUs=1 RealMemory=100 State=UNKNOWN
PartitionName=main Nodes=${host} Default=YES MaxTime=INFINITE State=UP
`,
  )
  const environment = { SLURM_CONF: configuration }
  const env = { ...process.env, ...environment }
  const munged = spawn(
    '/usr/sbin/munged',
    [
      '--foreground',
      '--force',
      `--key-file=${directory}/munge/key`,
      `--socket=${socket}`,
      `--pid-file=${directory}/munge/pid`,
      `--log-file=${directory}/munge/log`,
      `--seed-file=${directory}/munge/seed`,
    ],
    { stdio: 'ignore' },
  )
  const slurmctld = spawn('/usr/sbin/slurmctld', ['-D', '-f', configuration], { stdio: 'ignore', env })
  const slurmd = spawn('/usr/sbin/slurmd', ['-D', '-f', configuration], {
    stdio: 'ignore',
    env,
    detached: true,
  })
  context.after(() => {
    for (const daemon of [slurmd, slurmctld, munged]) daemon.kill('SIGKILL')
  })
  const run = async (command: string, ...words: readonly string[]) =>
    (await promisify(execFile)(command, [...words], { env, cwd: directory, timeout: 20_000 })).stdout.trim()
  for (let attempt = 0; ; attempt++) {
    const state = await run('sinfo', '--noheader', '--format=%t').catch(String)
    if (state === 'idle') break
    if (attempt > 300) {
      const log = await readFile(join(directory, 'slurmctld.log'), 'utf8').catch(() => '')
      throw new Error(`Slurm did not start: ${state}\n${log.slice(-2000)}`)
    }
    await sleep(200)
  }
  return {
    environment,
    run,
    submit: async (script, ...options) => {
      const path = join(directory, `job-${Math.random().toString(36).slice(2)}.sh`)
      await writeFile(path, `#!/bin/bash\n${script}\n`, { mode: 0o755 })
      return run('sbatch', '--parsable', `--output=${directory}/%j.out`, ...options, path)
    },
    output: (jobId) => readFile(join(directory, `${jobId}.out`), 'utf8'),
    state: async (jobId) => {
      const text = await run('scontrol', 'show', 'job', '--oneliner', jobId).catch(() => '')
      return /\bJobState=(\S+)/.exec(text)?.[1]
    },
    async killNode() {
      // A job's steps are children of slurmstepd, which slurmd started.
      const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,comm='])
      const rows = stdout
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
      const doomed = new Set([String(slurmd.pid)])
      const spool = join(directory, 'spool')
      for (const [pid, , command] of rows) {
        if (!pid || !command?.startsWith('slurmstepd')) continue
        const environ = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
        if (environ.includes(spool) || environ.includes(configuration)) doomed.add(pid)
      }
      for (let grown = 0; grown !== doomed.size; ) {
        grown = doomed.size
        for (const [pid, parent] of rows) if (pid && parent && doomed.has(parent)) doomed.add(pid)
      }
      for (const pid of doomed) {
        try {
          process.kill(Number(pid), 'SIGKILL')
        } catch {
          // It has already ended.
        }
      }
    },
  }
}
