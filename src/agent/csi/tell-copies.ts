import type { Cache } from '../../cache/cache.js'

/** The cache, which calls `onChange` whenever this process may have changed which copies its node has. */
export function tellCopies(cache: Cache, onChange: () => void): Cache {
  const { record } = cache
  const telling =
    <Words extends readonly unknown[], Answer>(change: (...words: Words) => Promise<Answer>) =>
    async (...words: Words): Promise<Answer> => {
      try {
        return await change(...words)
      } finally {
        onChange()
      }
    }
  return {
    ...cache,
    record: {
      ...record,
      admit: telling(record.admit), // it may begin an eviction
      markReady: telling(record.markReady),
      beginEviction: telling(record.beginEviction),
      finishEviction: telling(record.finishEviction),
      addAdopted: telling(record.addAdopted),
      returnCopy: telling(record.returnCopy),
      forgetCopies: telling(record.forgetCopies),
    },
  }
}
