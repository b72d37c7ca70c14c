/** `dsc/params`: a worker's connection to a central node (`dsc params serve`), and its mirror of the parameters. */

export type { PushExtras } from '../memory/params/central-options.js'
export type { Mirror } from '../memory/params/mirror.js'
export {
  openParameterClient,
  type ParameterClient,
  type PushResult,
} from '../memory/params/parameter-client.js'
export type { OptimizerChange } from '../memory/params/plan/optimizer-settings.js'
export {
  layOutParameters,
  type ParameterLayout,
  type ParameterSlot,
} from '../memory/params/plan/parameter-layout.js'
