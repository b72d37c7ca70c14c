import { type Command, Option, type OptionValues } from 'commander'
import { FORMAT_NAMES } from '../../model/sample-formats.js'
import { parseWanted } from '../../samples/wanted-files.js'

/** Adds `--split`, `--only`, `--as` and `--columns`. */
export function withSampleOptions<Words extends unknown[], Given extends OptionValues>(
  command: Command<Words, Given>,
) {
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
