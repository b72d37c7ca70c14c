import type { CommandUnknownOpts } from 'commander'

/** The options of the command that `Make` makes, as its action gets them. */
export type OptionsOf<Make extends (...given: never[]) => CommandUnknownOpts> = ReturnType<
  ReturnType<Make>['opts']
>
