import { Command } from 'commander'
import { formatCroissant, parseCroissant } from '../../cache/accounting/croissant.js'
import { readReceipt } from '../../cache/accounting/read-receipt.js'
import type { VerifiedVersion } from '../../cache/upkeep/verify-receipt.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import type { Receipt } from '../../model/receipt.js'
import { tryReadFile } from '../../platform/try-read-file.js'
import type { CliContext } from '../context.js'
import { showReading } from './verify.js'

/** `dsc receipt`: which versions of which data a job used, and whether the same bytes are still available. */
export function receiptCommand(context: CliContext) {
  return new Command('receipt')
    .argument('<job>', 'a Slurm job, a pod or a task; with --verify also a receipt file')
    .option('--verify', 'check that the same bytes are still available')
    .addHelpText(
      'after',
      '\n--verify lists each source, and reads the copy on this node. It exits with 4 if bytes are gone.\n\nExamples:\n  dsc receipt 4711 > receipt.json\n  dsc receipt nightly-eval --verify\n  dsc receipt receipt.json --verify',
    )
    .action(async (job, options) => {
      if (!options.verify) {
        const receipt = await requireReceipt(context, job)
        const document = formatCroissant(receipt, context.nowMs())
        context.report.result<'receipt'>({ receipt: document }, () => JSON.stringify(document, undefined, 2))
        return
      }
      const receipt = readReceiptFile(job) ?? (await requireReceipt(context, job))
      await verify(context, receipt)
    })
}

async function requireReceipt(context: CliContext, job: string): Promise<Receipt> {
  const record = await context.openRecord()
  const receipt = await readReceipt(record, job)
  if (receipt) return receipt
  throw new DscError('COPY_NOT_FOUND', `the history knows no dataset that a job ${job} used`, {
    hint: 'dsc history names the tasks of the last uses; `history` in dsc.yaml says how long they are kept',
  })
}

/** Undefined if there is no such file: then it is the name of a job. */
function readReceiptFile(path: string): Receipt | undefined {
  const text = tryReadFile(path)
  if (text === undefined) return undefined
  try {
    const document = JSON.parse(text)
    return parseCroissant(document?.receipt ?? document) // written with or without `--json`
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error
    throw new DscError('USAGE', `${path}: ${error.message}`, { hint: 'dsc receipt <job> writes one' })
  }
}

async function verify(context: CliContext, receipt: Receipt): Promise<void> {
  const api = await context.openApi()
  const datasets = await api.verifyReceipt(receipt.used, {
    signal: context.signal,
    onProgress: (progress) => showReading(context, progress),
  })
  context.report.progress(undefined)
  const isProven = datasets.every(({ isAvailable }) => isAvailable)
  context.report.result<'receipt --verify'>({ task: receipt.task, isProven, datasets }, () =>
    datasets.map(describeVerified).join('\n'),
  )
  if (isProven) return
  const gone = datasets.filter(({ isAvailable }) => !isAvailable)
  const elsewhere = gone.find(({ nodes }) => nodes.length > 0)
  throw new DscError(
    'VERSION_GONE',
    `${receipt.task} used data that is no longer available here: ${gone.map(({ dataset, version }) => `${dataset} ${version.slice(0, 12)}`).join(', ')}`,
    {
      hint: elsewhere
        ? `run dsc receipt --verify on ${elsewhere.nodes[0]}, which has a copy of ${elsewhere.dataset}`
        : 'restore the objects at the source, or keep copies with dsc lock',
    },
  )
}

function describeVerified({ dataset, version, isAvailable, source, here, nodes }: VerifiedVersion): string {
  const findings = [
    describeSource(source),
    ...(here === null
      ? []
      : [
          here.damages === 0
            ? `the copy here is whole: ${formatCount(here.checkedFiles, 'file')}, ${formatByteSize(here.checkedBytes)} compared`
            : `the copy here has ${formatCount(here.damages, 'problem')}: dsc verify ${dataset}`,
        ]),
    ...(nodes.length > 0 ? [`${nodes.join(', ')} should have it, too`] : []),
  ]
  return `${dataset} ${version.slice(0, 12)}: ${isAvailable ? 'available' : 'NOT available here'}\n${findings.map((finding) => `  ${finding}`).join('\n')}`
}

function describeSource(source: VerifiedVersion['source']): string {
  switch (source.state) {
    case 'same':
      return source.provenBy === 'listing'
        ? 'the source lists the same objects with the same checksums'
        : 'the source has the same files by size and modification time'
    case 'changed':
      return `the source has changed: it is version ${source.version.slice(0, 12)} now`
    case 'unreadable':
      return `the source cannot be read: ${source.failure.message}`
    case 'unknown':
      return 'nobody knows a source of it: it was adopted'
  }
}
