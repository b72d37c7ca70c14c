import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { CliContext } from '../context.js'

/** `dsc agent`: the daemon of a node. */
export function agentCommand(context: CliContext): Command {
  return new Command('agent')
    .description('serve the copies of this node to other nodes, until stopped')
    .option('--print-systemd', 'print a systemd service to install')
    .addHelpText(
      'after',
      '\nIt listens at agent.listen (default 127.0.0.1:7070), renews leases, ends those of dead holders, and\nanswers /healthz and /metrics (Prometheus). Beyond loopback it needs agent.tokenFile.\n\nExamples:\n  dsc agent\n  dsc agent --print-systemd | sudo tee /etc/systemd/system/dsc-agent.service\n  curl -H "authorization: Bearer $(cat /etc/dsc/token)" http://gpu-07:7070/metrics',
    )
    .action(async (options: { readonly printSystemd?: true }) => {
      const config = await context.config()
      if (options.printSystemd) {
        const { formatAgentUnit } = await import('../agent-unit.js')
        const text = formatAgentUnit(process.argv[1]!, config.filePath)
        context.report.result({ text }, () => text.trimEnd())
        return
      }
      const { startAgent } = await import('../../agent/run-agent.js')
      const { readToken, requireProtection } = await import('../../agent/authorize.js')
      const { listen, tokenFile, tls, advertise, forgetNodesAfterMs } = config.agent
      const token = tokenFile === undefined ? undefined : await readToken(tokenFile)
      requireProtection(listen, token)
      const cache = await context.openCache()
      const agent = await startAgent({
        ...{ cache, listen, advertise, token, forgetNodesAfterMs, hostName: hostname() },
        tls: tls && { cert: await readPem(tls.certFile), key: await readPem(tls.keyFile) },
        note: (sentence) => context.report.note(sentence),
      }).catch((error: unknown) => {
        const { code } = error as NodeJS.ErrnoException
        if (code !== 'EADDRINUSE' && code !== 'EADDRNOTAVAIL' && code !== 'EACCES') throw error
        throw new DscError('CONFIG_INVALID', `agent.listen: cannot listen there (${code})`, {
          hint: 'is another agent running? else set agent.listen in dsc.yaml',
          cause: error,
        })
      })
      context.report.result(
        { node: cache.node, url: agent.url },
        () => `${cache.node} serves at ${agent.url}`,
      )
      if (!context.signal.aborted) {
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }))
      }
      context.report.note('stopping')
      await agent.stop()
    })
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
