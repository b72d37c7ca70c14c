import { z } from 'zod'
import { parseSourceUrl } from '../model/source-url.js'

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const namespace = { error: 'the name of a namespace such as team-a' }

/** `namespaces:` of a dataset. */
export const namespaces = z
  .array(z.string(namespace).regex(NAMESPACE, namespace), { error: 'a list of namespaces such as [team-a]' })
  .describe('Namespaces of Kubernetes whose pods may mount it. Default: all; with readers, none.')
  .optional()

const pattern = { error: 'a URL that is not file://, with * at its end for any rest, such as s3://team-a/*' }
const sourcePattern = z.string(pattern).refine((raw) => isSourcePattern(raw), pattern)

/** `agent.csi`: settings of `dsc agent --csi`. */
export const csi = z
  .strictObject({
    driver: z
      .string({ error: 'a domain name such as dsc.io' })
      .regex(/^(?=.{1,63}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, { error: 'a domain name such as dsc.io' })
      .describe('Name of the CSI driver, which pods name. Default: dsc.io.')
      .optional(),
    kubelet: z
      .string({ error: 'an absolute folder such as /var/lib/kubelet' })
      .regex(/^\/.*[^/]$/, { error: 'an absolute folder such as /var/lib/kubelet' })
      .describe("Kubelet's folder, its --root-dir. Default: /var/lib/kubelet.")
      .optional(),
    sources: z
      .record(z.string(), z.array(sourcePattern, { error: 'a list of URLs' }), {
        error: 'lists of URLs by namespace',
      })
      .describe(
        'URLs that pods may name beside the datasets of this file, by namespace (* for all): {team-a: ["s3://team-a/*"]}. Default: none.',
      )
      .optional(),
  })
  .describe('Settings of `dsc agent --csi`, which mounts datasets into pods.')
  .optional()

/** A URL of a source, or the beginning of one that ends in `*`. Pods never name files of the node. */
function isSourcePattern(raw: string): boolean {
  if (!/^(?!file:)[a-z0-9]+:\/\//.test(raw)) return false
  if (raw.endsWith('*')) return true
  try {
    parseSourceUrl(raw)
    return true
  } catch {
    return false
  }
}
