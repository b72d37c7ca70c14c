import { Command } from 'commander'
import { atEnd } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'
import { confirm } from '../questions/confirm.js'

/** `dsc record`: commands about the record as a whole. */
export function recordCommand(context: CliContext) {
  return new Command('record')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc record migrate sqlite:///var/lib/dsc/record.db postgres://dsc@db.example/dsc\n  dsc record forget-node gpu-07',
    )
    .addCommand(migrateCommand(context))
    .addCommand(forgetNodeCommand(context))
    .addCommand(claimNodeCommand(context))
}

function migrateCommand(context: CliContext) {
  return new Command('migrate')
    .description('copy the record into an empty database')
    .argument('<from>', 'sqlite:///file or postgres://user@host/database')
    .argument('<to>', 'the same; a file is created')
    .addHelpText(
      'after',
      '\nStop agents and jobs first. Afterwards, set `record:` to <to> in every dsc.yaml.\n\nExample:\n  dsc record migrate sqlite:///var/lib/dsc/record.db postgres://dsc@db.example/dsc',
    )
    .action(async (rawFrom, rawTo) => {
      const { moveRecord } = await import('../../records/move-record.js')
      const from = await context.openDatabase(rawFrom, { mustExist: true })
      await using _ = atEnd(() => from.close())
      const to = await context.openDatabase(rawTo, { mustExist: false })
      await using _to = atEnd(() => to.close())
      const rows = await moveRecord(from, to)
      const { followRecord } = await import('../../cache/own-record.js')
      const { cache, record } = await context.config()
      const moved = { from: await context.locateRecord(rawFrom), to: await context.locateRecord(rawTo) }
      await followRecord(cache.root, moved)
      context.report.result<'record migrate'>({ from: from.location, to: to.location, rows }, () =>
        [
          `copied ${formatCount(rows.copies, 'copy', 'copies')}, ${formatCount(rows.leases, 'lease')}, ${formatCount(rows.datasets, 'dataset')}, ${formatCount(rows.nodes, 'node')} and ${formatCount(rows.events, 'event')}`,
          `from ${from.location}`,
          `to   ${to.location}`,
        ].join('\n'),
      )
      if (record.url !== moved.to.url) context.report.note('now set `record:` in the dsc.yaml of every node')
    })
}

function forgetNodeCommand(context: CliContext) {
  return new Command('forget-node')
    .description('forget a lost node, with its copies and leases')
    .argument('<node>', 'as `dsc status` lists it')
    .option('--dry-run', 'show what would be forgotten')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nNothing on its disk is touched.\n\nExamples:\n  dsc record forget-node gpu-07 --dry-run\n  dsc record forget-node gpu-07 --yes',
    )
    .action(async (node, options) => {
      const store = await context.openRecord()
      const known = (await store.listNodes()).some((entry) => entry.node === node)
      const copies = await store.listCopies({ node }, store.nowMs())
      if (!known && copies.length === 0) {
        throw new DscError('USAGE', `the record knows no node ${node}`, { hint: 'dsc status' })
      }
      const used = copies.reduce((sum, copy) => sum + copy.referenceCount, 0)
      const what = `node ${node} with ${formatCount(copies.length, 'copy', 'copies')} and ${formatCount(used, 'live lease')}`
      if (options.dryRun) {
        context.report.result(
          describeForgotten(node, { copies, isDryRun: true }),
          () => `would forget ${what}`,
        )
        return
      }
      if (!(await confirm(`Forget ${what}?`, { isYes: options.yes === true, canDryRun: true }))) return
      const forgotten = await store.forgetNode(node, `dsc record forget-node ${node}`, store.nowMs())
      context.report.result(
        describeForgotten(node, { copies: forgotten, isDryRun: false }),
        () => `forgot node ${node} with ${formatCount(forgotten.length, 'copy', 'copies')}`,
      )
    })
}

function describeForgotten(
  node: string,
  { copies, isDryRun }: { readonly copies: readonly Copy[]; readonly isDryRun: boolean },
): AnswerOf<'record forget-node'> {
  return { node, copies: copies.map(({ dataset, version }) => ({ dataset, version })), isDryRun }
}

function claimNodeCommand(context: CliContext) {
  return new Command('claim-node')
    .description('make this machine and cache the node, after a move or rename')
    .option('--new', 'first give a copied disk an identity of its own')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nRun it on that machine. docs/guides/cluster.md says when.\n\nExamples:\n  dsc record claim-node\n  dsc record claim-node --new --yes',
    )
    .action(async (options) => {
      const { claimNode } = await import('../../cache/claim-node.js')
      const { nameRecord } = await import('../../cache/cache-identity.js')
      const [{ node, cache, record }, store] = await Promise.all([context.config(), context.openRecord()])
      const recordName = nameRecord(record, cache.root)
      const claim = { record: store, node, cacheRoot: cache.root, isNew: options.new === true, recordName }
      const question = `Make ${cache.root} on this machine the cache of node ${node}?`
      if (!(await confirm(question, { isYes: options.yes === true }))) return
      const { renamedFrom, cacheId } = await claimNode(claim)
      const answer: AnswerOf<'record claim-node'> = {
        node,
        cacheRoot: cache.root,
        cacheId,
        renamedFrom: renamedFrom ?? null,
      }
      context.report.result(answer, () =>
        renamedFrom === undefined
          ? `node ${node} is ${cache.root} on this machine`
          : `node ${renamedFrom} is called ${node} from now on`,
      )
    })
}
