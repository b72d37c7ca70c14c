import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { askFeed } from '../../feed/session/ask-feed.js'
import { MESSAGE } from '../../feed/session/wire.js'
import type { FeedStatusAnswer } from '../answers/feed-answers.js'
import type { CliContext } from '../context.js'
import { defaultSocketPath } from './feed-arguments.js'

interface StatusOptions {
  readonly socket?: string
  readonly stop?: true
}

/** `dsc feed status`. */
export function feedStatusCommand(context: CliContext): Command {
  return new Command('status')
    .description('show what a feed does, as Prometheus text')
    .option('--socket <path>', 'socket of the feed')
    .option('--stop', 'end the feed')
    .addHelpText('after', '\nExamples:\n  dsc feed status\n  dsc feed status --stop')
    .action(async (options: StatusOptions) => {
      const paths = options.socket === undefined ? findSockets(context.environment) : [options.socket]
      if (options.stop && paths.length > 1)
        throw new DscError('USAGE', `${paths.length} feeds run: say which one to end`, {
          hint: `--socket ${paths[0]}`,
        })
      const feeds = await Promise.all(
        paths.map(async (socket) => ({ socket, text: await askFeed(socket, MESSAGE.status) })),
      )
      if (options.stop) await askFeed(paths[0]!, MESSAGE.stop)
      const answer: FeedStatusAnswer = {
        dsc: 1,
        metrics: parseMetrics(feeds[0]!.text),
        feeds: feeds.map(({ socket, text }) => ({ socket, metrics: parseMetrics(text) })),
      }
      context.report.result(answer, () => feeds.map((feed) => formatFeed(feed, feeds.length)).join('\n'))
    })
}

/** The sockets of this user's feeds: the default one, or those of feeds that Python has started beside it. */
function findSockets(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const path = defaultSocketPath(environment)
  if (environment.DSC_FEED_SOCKET || existsSync(path)) return [path]
  const folder = dirname(path)
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => SOCKET_OF_PYTHON.test(name)) : []
  return names.length > 0 ? names.sort().map((name) => join(folder, name)) : [path]
}

const SOCKET_OF_PYTHON = /^feed-[0-9a-f]{20}\.sock$/

function formatFeed({ socket, text }: { socket: string; text: string }, count: number): string {
  return count === 1 ? text.trimEnd() : `# ${socket}\n${text.trimEnd()}`
}

/** Parses lines of `name{labels} value` into an object; skips comments. */
export function parseMetrics(text: string): Readonly<Record<string, number>> {
  const rows = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    rows.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}
