import { requireTimer } from '../../model/duration.js'
import { formatCount } from '../../model/format-count.js'
import { untilAborted } from '../../platform/poll.js'
import { keepHeapSmallAfterWork } from '../../platform/small-heap.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseWholeNumber } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { defaultSocketPath } from './feed-arguments.js'
import { createFeedCommand, openEngineFor } from './feed-source.js'

/** `dsc feed serve`. */
export function feedServeCommand(context: CliContext) {
  return createFeedCommand('serve')
    .description('run a feed by hand')
    .option('--socket <path>', 'socket for clients')
    .option(
      '--idle-exit <seconds>',
      'exit after this time without a client',
      argument((raw) => requireTimer(1000 * parseWholeNumber(raw), raw) / 1000),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  dsc feed serve flowers --seed 42 --memory 2GiB\n  dsc feed serve --mix web=1,code=2.5\n  dsc feed serve --from 10.0.0.7:7071,10.0.0.8:7071 --layout striped --fallback flowers',
    )
    .action(async (target, options) => {
      const heap = keepHeapSmallAfterWork() // memory beyond the feed's buffer would be taken from training
      const notes: string[] = [] // nobody may ever read the log of a feed that a trainer started
      const warn = (sentence: string) => {
        notes.push(sentence)
        context.report.warn(sentence)
      }
      const report = { ...context.report, warn }
      let download: Promise<unknown> = Promise.resolve()
      const engine = await openEngineFor(target, options, { ...context, report }, (arriving) => {
        download = arriving
      })
      void download.then(
        () => heap.afterWork(),
        () => heap.afterWork(),
      )
      const [{ SessionServer }, { FedTimeRecord, findNoted }] = await Promise.all([
        import('../../feed/session/session-server.js'),
        import('../../open/record-fed-time.js'),
      ])
      const stop = new AbortController()
      let idle: NodeJS.Timeout | undefined
      const onClients = (count: number) => {
        clearTimeout(idle)
        if (count === 0 && options.idleExit !== undefined)
          idle = setTimeout(() => stop.abort(), options.idleExit * 1000).unref() // a feed that was told to stop has no clients either
      }
      try {
        const server = await SessionServer.open({
          engine,
          notes,
          socketPath: options.socket ?? defaultSocketPath(context.environment),
          isPoisoning: context.environment.DSC_FEED_DEBUG === 'poison',
          onClients,
          onStop: () => stop.abort(),
        })
        onClients(0)
        const noted = findNoted({ ...options, target })
        const time = noted && new FedTimeRecord(context, noted, () => server.takeTime())
        const { table, seed, orderKind } = engine
        const answer: AnswerOf<'feed serve'> = {
          socket: server.socketPath,
          pid: process.pid,
          samples: table.count,
          sampleBytes: table.totalBytes,
          fingerprint: table.fingerprint,
          seed,
          order: orderKind,
        }
        context.report.result(
          answer,
          () =>
            `feeding ${formatCount(table.count, 'sample')} (${table.totalBytes} bytes) on ${server.socketPath}`,
        )
        await untilAborted(AbortSignal.any([context.signal, stop.signal]))
        await server.close() // first: the record may be away for a while, and nobody may join this feed any more
        if (time) await time.close()
      } finally {
        clearTimeout(idle)
        await engine.close()
      }
    })
}
