import { type Command, Option } from 'commander'
import { FORMAT_NAMES, type FormatName } from '../../model/sample-formats.js'
import { parseWanted } from '../../samples/wanted-files.js'

/** Which files of a dataset are samples, and how to read them. */
export interface SampleOptions {
  readonly split?: string
  readonly only?: readonly string[]
  readonly as?: FormatName
  readonly columns?: readonly string[]
}

/** Adds `--split`, `--only`, `--as` and `--columns`. */
export function withSampleOptions(command: Command): Command {
  return command
    .option('--split <folder>', 'folder of the dataset, for example train')
    .option('--only <files>', 'only these files, for example png,jpg or "data/*.csv"', parseWanted)
    .addOption(new Option('--as <kind>', 'format, if the names do not tell').choices(FORMAT_NAMES))
    .option('--columns <names>', 'columns of rows, for example image,label (default: all)', parseNames)
}

/** Parses `image,label` into names. */
function parseNames(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
}
