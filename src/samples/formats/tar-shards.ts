import type { Format, IndexedSamples, IndexRequest } from './format.js'
import { eitherWay, indexShardsAs } from './index-shards.js'
import { countIndexThreads, indexTarInThreads } from './index-tar-in-threads.js'

/** Tar archives with samples as members. */
export const TAR_SHARDS: Format = {
  recognition: { title: 'tar shards', holdsSamples: (path) => /\.tar$/i.test(path), takesAnyName: true },
  index,
}

/**
 * Lists the samples of tar shards. Members of one key are one sample, as in WebDataset (`MemberGroups`); if every key
 * has one member, samples are the members' contents.
 */
async function index(request: IndexRequest): Promise<IndexedSamples> {
  const threads = countIndexThreads(request.files)
  if (threads > 1)
    return (
      (await indexTarInThreads('member', request, threads)) ??
      (await indexTarInThreads('tar', request, threads))!
    )
  return eitherWay((format) => indexShardsAs(format, request))
}
