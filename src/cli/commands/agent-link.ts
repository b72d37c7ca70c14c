import { hostname } from 'node:os'
import { Command } from 'commander'
import type { Config } from '../../config/config.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatDuration, parseDuration } from '../../model/duration.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'

const DEFAULT_LINK_MS = 8 * 3_600_000

/** `dsc agent link`: the address of the page of this node's agent, signed if necessary. */
export function agentLinkCommand(context: CliContext) {
  return new Command('link')
    .description("print a link to the page of this node's agent")
    .option('--for <duration>', 'how long it is valid (default: 8h, at most 30d)', argument(parseDuration))
    .addHelpText(
      'after',
      '\nThe link opens the page and nothing else, on every agent with the same token. To void it, remove the token and\nrestart the agents.\n\nExamples:\n  dsc agent link\n  dsc agent link --for 30m --json | jq -r .url',
    )
    .action(async (options) => {
      const config = await context.config()
      const { MAX_LINK_MS, signLink } = await import('../../agent/server/page-link.js')
      const goodForMs = options.for ?? DEFAULT_LINK_MS
      if (goodForMs <= 0 || goodForMs > MAX_LINK_MS)
        throw new DscError('USAGE', `--for: expected up to 30d, found ${formatDuration(goodForMs)}`, {
          hint: 'dsc agent link --for 8h',
        })
      const url = await findPageUrl(config)
      const { tokenFile } = config.agent
      if (tokenFile === undefined) {
        context.report.result<'agent link'>({ url, expiresAt: null }, () => url)
        return
      }
      const { readTokens } = await import('../../agent/server/authorize.js')
      const { own } = await readTokens(tokenFile)
      const expiresAtMs = Math.floor((context.nowMs() + goodForMs) / 1000) * 1000
      const signed = `${url}#${signLink(own, expiresAtMs)}`
      context.report.result<'agent link'>(
        { url: signed, expiresAt: new Date(expiresAtMs).toISOString() },
        () => signed,
      )
      if (!config.agent.isPageEverywhere)
        context.report.note('for browsers of this machine; agent.page: everywhere is for others, too')
    })
}

async function findPageUrl({ agent }: Config): Promise<string> {
  const { agentUrl } = await import('../../agent/server/agent-url.js')
  const { listen, advertise, tls, isPageEverywhere } = agent
  const isAnywhere = listen.host === '0.0.0.0' || listen.host === '::'
  return isPageEverywhere || !isAnywhere
    ? `${agentUrl({ listen, advertise, tls, hostName: hostname() })}/`
    : `${agentUrl({ listen: { ...listen, host: 'localhost' }, advertise: undefined, tls, hostName: 'localhost' })}/`
}
