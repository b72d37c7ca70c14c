import { Command } from 'commander'
import { deriveGatewayKey } from '../../agent/gateway/gateway-keys.js'
import { readTokens } from '../../agent/server/authorize.js'
import { DscError } from '../../failure/dsc-error.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'

/** `dsc gateway`: the keys with which S3 clients read through the agents of the cluster. */
export function gatewayCommand(context: CliContext) {
  return new Command('gateway')
    .addCommand(keyCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc agent --gateway 127.0.0.1:9300\n  eval "$(dsc gateway key alice)"',
    )
}

function keyCommand(context: CliContext) {
  return new Command('key')
    .description('print a key as shell variables')
    .argument('<name>', 'user or job, up to 64 of A-Z a-z 0-9 . _ -', argument(parseName))
    .addHelpText(
      'after',
      "\nEvery gateway with the same agents' token accepts the key. A new token voids it.\n\nExamples:\n  dsc gateway key alice\n  dsc gateway key job-4711 --json",
    )
    .action(async (name) => {
      const { tokenFile } = (await context.config()).agent
      if (tokenFile === undefined)
        throw new DscError(
          'CONFIG_INVALID',
          "keys are made from the agents' token, and agent.tokenFile is not set",
          { hint: 'set agent.tokenFile in dsc.yaml' },
        )
      const key = deriveGatewayKey((await readTokens(tokenFile)).own, name)
      context.report.result<'gateway key'>(
        { ...key },
        () =>
          `export AWS_ACCESS_KEY_ID=${key.accessKeyId}\nexport AWS_SECRET_ACCESS_KEY=${key.secretAccessKey}\nexport AWS_REGION=us-east-1`,
      )
    })
}

/** Throws a RangeError if the name is invalid. */
function parseName(raw: string): string {
  deriveGatewayKey('', raw)
  return raw
}
