import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import { confirm } from '../confirm.js'
import type { CliContext } from '../context.js'

/** `dsc record`: what concerns the record as a whole. */
export function recordCommand(context: CliContext): Command {
  const record = new Command('record').description('move the record to another database')
  record
    .command('migrate')
    .description('copy the whole record into an empty database; the old one stays as it is')
    .argument('<from>', 'sqlite:///file or postgres://user@host/database')
    .argument('<to>', 'the same; made if it is a file that does not exist')
    .addHelpText(
      'after',
      '\nAfterwards set `record:` in the dsc.yaml of every node to <to>. What commands write into <from> between\nthe copy and that change is lost, so stop agents and jobs first.\n\nExample:\n  dsc record migrate sqlite:///var/lib/dsc/record.db postgres://dsc@db.example/dsc',
    )
    .action(async (rawFrom: string, rawTo: string) => {
      const { copyRecord } = await import('../../records/copy-record.js')
      const from = await context.openDatabase(rawFrom, { mustExist: true })
      try {
        const to = await context.openDatabase(rawTo, { mustExist: false })
        try {
          const rows = await copyRecord(from, to)
          context.report.result({ from: from.location, to: to.location, rows }, () =>
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
  record
    .command('forget-node')
    .description('forget a node that will not come back, with its copies and their leases')
    .argument('<node>', 'as dsc status lists it')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nNothing on its disk is touched.\n\nExample:\n  dsc record forget-node gpu-07 --yes',
    )
    .action(async (node: string, options: { readonly yes?: true }) => {
      const store = await context.openRecord()
      const known = (await store.listNodes()).some((entry) => entry.node === node)
      const copies = await store.listCopies({ node }, store.nowMs())
      if (!known && copies.length === 0) {
        throw new DscError('USAGE', `the record knows no node ${node}`, { hint: 'dsc status' })
      }
      const used = copies.reduce((sum, copy) => sum + copy.referenceCount, 0)
      const question = `Forget node ${node} with ${formatCount(copies.length, 'copy', 'copies')} and ${formatCount(used, 'live lease')}?`
      if (!(await confirm(question, { isYes: options.yes === true }))) return
      const forgotten = await store.forgetNode(node, `dsc record forget-node ${node}`, store.nowMs())
      context.report.result(
        { node, copies: forgotten.map(({ dataset, version }) => ({ dataset, version })) },
        () => `forgot node ${node} with ${formatCount(forgotten.length, 'copy', 'copies')}`,
      )
    })
  return record
}
