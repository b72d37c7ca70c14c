import type { Dataset } from '../../model/dataset.js'
import { giveHome } from '../../platform/this-user.js'
import type { HandedAccess } from '../own-access.js'
import { readAwsSettings } from './aws-settings.js'

/** Finds this user's keys to a bucket, and where it is. Rejects with SOURCE_DENIED if the user has no keys. */
export async function findOwnKeys(dataset: Dataset): Promise<HandedAccess> {
  giveHome(process.env)
  const aws = await readAwsSettings(dataset, process.env)
  const { endpoint, region, isPathStyle } = aws
  const { findSdkKeys } = await import('./sdk-target.js')
  const keys = aws.keys ?? (await findSdkKeys(dataset, aws))
  return { scheme: 's3', endpoint, region, isPathStyle, keys }
}
