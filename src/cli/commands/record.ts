import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import type { ClaimNodeAnswer, ForgetNodeAnswer, MigrateAnswer } from '../answers/cluster-answers.js'
import type { CliContext } from '../context.js'
import { confirm } from '../questions/confirm.js'

/** `dsc record`: commands about the record as a whole. */
export function recordCommand(context: CliContext): Command {
  return new Command('record')
    .description('move the record to another database, or take a lost node out of it')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc record migrate sqlite:///var/lib/dsc/record.db postgres://dsc@db.example/dsc\n  dsc record forget-node gpu-07',
    )
    .addCommand(migrateCommand(context))
    .addCommand(forgetNodeCommand(context))
    .addCommand(claimNodeCommand(context))
}

function migrateCommand(context: CliContext): Command {
  return new Command('migrate')
    .description('copy the whole record into an empty database; the old one stays as it is')
    .argument('<from>', 'sqlite:///file or postgres://user@host/database')
    .argument('<to>', 'the same; made if it is a file that does not exist')
    .addHelpText(
      'after',
      '\nAfterwards set `record:` in the dsc.yaml of every node to <to>. What commands write into <from> between\nthe copy and that change is lost, so stop agents and jobs first.\n\nExample:\n  dsc record migrate sqlite:///var/lib/dsc/record.db postgres://dsc@db.example/dsc',
    )
    .action(async (rawFrom: string, rawTo: string) => {
      const { moveRecord } = await import('../../records/move-record.js')
      const from = await context.openDatabase(rawFrom, { mustExist: true })
      try {
        const to = await context.openDatabase(rawTo, { mustExist: false })
        try {
          const rows = await moveRecord(from, to)
          const answer: MigrateAnswer = { dsc: 1, from: from.location, to: to.location, rows }
          context.report.result(answer, () =>
            [
              `copied ${formatCount(rows.copies, 'copy', 'copies')}, ${formatCount(rows.leases, 'lease')}, ${formatCount(rows.datasets, 'dataset')}, ${formatCount(rows.nodes, 'node')} and ${formatCount(rows.events, 'event')}`,
              `from ${from.location}`,
              `to   ${to.location}`,
            ].join('\n'),
          )
          context.report.note('now set `record:` in the dsc.yaml of every node')
        } finally {
          await to.close()
        }
      } finally {
        await from.close()
      }
    })
}

function forgetNodeCommand(context: CliContext): Command {
  return new Command('forget-node')
    .description('forget a node that will not come back, with its copies and their leases')
    .argument('<node>', 'as dsc status lists it')
    .option('--dry-run', 'say what would be forgotten, and change nothing')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nNothing on its disk is touched.\n\nExamples:\n  dsc record forget-node gpu-07 --dry-run\n  dsc record forget-node gpu-07 --yes',
    )
    .action(async (node: string, options: { readonly yes?: true; readonly dryRun?: true }) => {
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
): ForgetNodeAnswer {
  return { dsc: 1, node, copies: copies.map(({ dataset, version }) => ({ dataset, version })), isDryRun }
}

function claimNodeCommand(context: CliContext): Command {
  return new Command('claim-node')
    .description('say that this machine and cache root are the node, after a move, a restore or a new name')
    .option('--new', 'give the cache an identity of its own first, because its disk was copied from another')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nRun it on the machine that is the node from now on; docs/guides/cluster.md says when.\n\nExamples:\n  dsc record claim-node\n  dsc record claim-node --new --yes',
    )
    .action(async (options: { readonly new?: true; readonly yes?: true }) => {
      const { claimNode } = await import('../../cache/claim-node.js')
      const [{ node, cache }, store] = await Promise.all([context.config(), context.openRecord()])
      const claim = { record: store, node, cacheRoot: cache.root, isNew: options.new === true }
      const question = `Let node ${node} be ${cache.root} on this machine from now on?`
      if (!(await confirm(question, { isYes: options.yes === true }))) return
      const { renamedFrom, cacheId } = await claimNode(claim)
      const answer: ClaimNodeAnswer = {
        dsc: 1,
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
