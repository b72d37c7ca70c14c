import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { Command } from 'commander'
import type { CsiSettings } from '../../agent/csi/open-csi.js'
import { readExpiryMs } from '../../agent/server/certificate-expiry.js'
import type { DoorSettings, GatewaySettings } from '../../agent/start/agent-options.js'
import { waitForRecord } from '../../cache/wait-for-record.js'
import type { Config } from '../../config/config.js'
import { DEFAULT_GATEWAY_KEEP_MS } from '../../config/resolve-settings.js'
import { DscError } from '../../failure/dsc-error.js'
import { type HostPort, parseHostPort } from '../../model/host-port.js'
import { untilAborted } from '../../platform/poll.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import type { RightRules } from '../../policy/rights.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { agentLinkCommand } from './agent-link.js'

/** `dsc agent`: the background process of a node. */
export function agentCommand(context: CliContext) {
  return new Command('agent')
    .option(
      '--gateway <host:port>',
      'answer S3 clients there (overrides agent.gateway.listen)',
      argument(parseHostPort),
    )
    .option('--csi', 'mount datasets into pods, as a CSI driver of Kubernetes (root)')
    .option('--controller', 'stage the datasets of waiting pods, for a whole cluster of Kubernetes')
    .addHelpText(
      'after',
      '\nIt listens at agent.listen (default 127.0.0.1:7070), renews leases and ends those of dead holders.\n/ is the page (dsc agent link); /healthz, /readyz and /metrics are for monitoring. Beyond loopback it needs\nagent.tokenFile.\n\nExamples:\n  dsc agent\n  curl -H "authorization: Bearer $(cat /etc/dsc/token)" http://gpu-07:7070/metrics',
    )
    .addCommand(agentLinkCommand(context))
    .action(async (options) => {
      if (await runsAsMounter()) return
      if (options.controller) return (await import('./run-agent-controller.js')).runAgentController(context)
      const config = await context.config()
      const csi = options.csi && (await openCsi(config)) // before anything that an attacker could reach
      keepHeapSmall() // an agent's garbage would take memory from training
      const { startAgent } = await import('../../agent/start/run-agent.js')
      const { leaveRoomToKubelet } = await import('../../agent/csi/kubelet-room.js')
      const { readTokens, requireProtection } = await import('../../agent/server/authorize.js')
      const { listen, tokenFile, tls, advertise, forgetNodesAfterMs } = config.agent
      const tokens = tokenFile === undefined ? undefined : await readTokens(tokenFile)
      requireProtection(listen, tokens)
      const cache = await waitForRecord(context.openCache, {
        onAway: (sentence) => context.report.note(sentence),
        signal: context.signal,
      })
      const agent = await startAgent({
        version: context.version,
        configPath: context.configPath,
        cache: csi ? await leaveRoomToKubelet(cache, csi.kubelet) : cache,
        listen,
        advertise,
        tokens,
        forgetNodesAfterMs,
        hostName: hostname(),
        tls: tls && { cert: await readCertificate(tls.certFile), key: await readPem(tls.keyFile) },
        gateway: readGateway(config, options.gateway),
        csi,
        door: config.agent.door === undefined ? undefined : await readDoor(config, config.agent.door),
        // Where nobody has a shell, or all ask at the door, there is no cron job for it.
        cleansUp: csi !== undefined || config.agent.door !== undefined,
        isPageEverywhere: config.agent.isPageEverywhere,
        note: (sentence) => context.report.note(sentence),
      }).catch((error: unknown) => {
        const { code } = error as NodeJS.ErrnoException
        if (code !== 'EADDRINUSE' && code !== 'EADDRNOTAVAIL' && code !== 'EACCES') throw error
        throw new DscError('CONFIG_INVALID', `agent.listen: cannot listen there (${code})`, {
          hint: 'is another agent running? else set agent.listen in dsc.yaml',
          cause: error,
        })
      })
      const answer: AnswerOf<'agent'> = {
        node: cache.node,
        url: agent.url,
        gateway: agent.gatewayUrl ?? null,
        csi: agent.csiPath ?? null,
      }
      context.report.result(answer, () =>
        [
          `${cache.node} serves at ${agent.url}`,
          ...(agent.gatewayUrl ? [`S3 clients: AWS_ENDPOINT_URL=${agent.gatewayUrl}`] : []),
          ...(agent.csiPath ? [`kubelet: ${config.csi.driver} at ${agent.csiPath}`] : []),
        ].join('\n'),
      )
      await untilAborted(context.signal)
      context.report.note('stopping')
      await agent.stop()
    })
}

async function readDoor(config: Config, path: string): Promise<DoorSettings> {
  const { agent, origins } = config
  const isRequired = origins['agent.door']?.kind !== 'default'
  const { undeclaredBytesPerUser } = agent
  const { readAgentAccess } = await import('../../agent/calls/agent-access.js')
  const access = await readAgentAccess(config)
  return { path, rules: rulesOf(config), access, undeclaredBytesPerUser, isRequired }
}

function rulesOf({ agent: { admins } }: Config): RightRules {
  return { ownerUid: process.geteuid?.() ?? 0, admins }
}

function readGateway(config: Config, listen: HostPort | undefined): GatewaySettings | undefined {
  const { gateway } = config.agent
  const at = listen ?? gateway?.listen
  if (at === undefined) return undefined
  const ownUsers = [0, process.getuid?.() ?? 0]
  const users = gateway?.users ?? ownUsers
  return {
    listen: at,
    declared: config.datasets,
    keepMs: gateway?.keepMs ?? DEFAULT_GATEWAY_KEEP_MS,
    ranges: gateway?.ranges ?? 'proven',
    names: [...(gateway?.names ?? []), ...findOwnNames(config, at)],
    users: users === 'all' ? 'all' : new Set(users),
    rules: rulesOf(config),
  }
}

/** Whether this process is the one that `dsc agent --csi` starts to mount; then it has done so when this resolves. */
async function runsAsMounter(): Promise<boolean> {
  const { DSC_MOUNTER } = process.env
  if (DSC_MOUNTER === undefined) return false
  const { runMounter } = await import('../../agent/csi/start-mounter.js')
  await runMounter(DSC_MOUNTER)
  return true
}

async function openCsi({ cache, csi, datasets }: Config): Promise<CsiSettings> {
  const { startMounter } = await import('../../agent/csi/start-mounter.js')
  const { driver, kubelet, namespaces, sources } = csi
  // Without it no pod gets its volume or gives it back: the agent's supervisor starts both again.
  const onGone = () => process.kill(process.pid, 'SIGTERM')
  const mounter = await startMounter({ root: cache.root, kubelet, driver }, onGone)
  return {
    driver,
    kubelet,
    mounter,
    catalog: { declared: datasets, rules: { datasets: namespaces, sources } },
  }
}

/** Names by which this machine and its agent are known without configuration. */
function findOwnNames({ agent }: Config, listen: HostPort): string[] {
  const full = hostname()
  const advertised = agent.advertise === undefined ? [] : [new URL(agent.advertise).hostname]
  return [full, full.split('.')[0]!, listen.host, ...advertised].filter((name) => name !== '')
}

async function readCertificate(path: string): Promise<string> {
  const pem = await readPem(path)
  try {
    readExpiryMs(pem)
    return pem
  } catch (error) {
    throw new DscError('CONFIG_INVALID', `agent.tls: ${path}: ${(error as Error).message}`, { cause: error })
  }
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new DscError(
      'CONFIG_INVALID',
      `agent.tls: cannot read ${path} (${(error as NodeJS.ErrnoException).code})`,
      { cause: error },
    )
  }
}
