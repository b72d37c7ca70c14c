import { dirname } from 'node:path'
import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { askFeed, askRunningFeeds, type FeedText } from '../../feed/session/ask-feed.js'
import { MESSAGE } from '../../feed/session/wire.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'
import { defaultSocketPath } from './feed-arguments.js'

/** `dsc feed status`. */
export function feedStatusCommand(context: CliContext) {
  return new Command('status')
    .description('show what a feed does, as Prometheus text')
    .option('--socket <path>', 'socket of the feed')
    .option('--stop', 'end the feed')
    .addHelpText('after', '\nExamples:\n  dsc feed status\n  dsc feed status --stop')
    .action(async (options) => {
      const feeds = await ask(options.socket, context.environment)
      if (options.stop && feeds.length > 1)
        throw new DscError('USAGE', `${feeds.length} feeds run: say which one to end`, {
          hint: `--socket ${feeds[0]!.socket}`,
        })
      if (options.stop) await askFeed(feeds[0]!.socket, MESSAGE.stop)
      const answer: AnswerOf<'feed status'> = {
        metrics: parseMetrics(feeds[0]!.text),
        feeds: feeds.map(({ socket, text }) => ({ socket, metrics: parseMetrics(text) })),
      }
      context.report.result(answer, () => feeds.map((feed) => formatFeed(feed, feeds.length)).join('\n'))
    })
}

/** Asks the named feed, or every feed of this user that runs. */
async function ask(
  named: string | undefined,
  environment: CliContext['environment'],
): Promise<readonly FeedText[]> {
  const socket = named ?? environment.DSC_FEED_SOCKET
  if (socket) return [{ socket, text: await askFeed(socket, MESSAGE.status) }]
  const usual = defaultSocketPath(environment)
  const feeds = await askRunningFeeds(dirname(usual), MESSAGE.status)
  return feeds.length > 0 ? feeds : [{ socket: usual, text: await askFeed(usual, MESSAGE.status) }]
}

function formatFeed({ socket, text }: FeedText, count: number): string {
  return count === 1 ? text.trimEnd() : `# ${socket}\n${text.trimEnd()}`
}

/** Parses lines of `name{labels} value` into an object; skips comments. */
export function parseMetrics(text: string): Readonly<Record<string, number>> {
  const rows = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    rows.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}
