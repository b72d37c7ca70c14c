/** `dsc/params`: a worker's connection to a central node (`dsc params serve`), and its mirror of the parameters. */
export type { Mirror } from '../memory/params/mirror.js'
export {
  openParameterClient,
  type ParameterClient,
  type PushResult,
} from '../memory/params/parameter-client.js'
export {
  layOutParameters,
  type ParameterLayout,
  type ParameterSlot,
} from '../memory/params/plan/parameter-layout.js'
