// What runs of cold.mjs come to: one table for each set, step and machine, one row for each loader.

/**
 * Rows have the medians of a loader's runs, in s: `first` batch, `epochs` 1 and 2; and `copies` of the data from the
 * store. A loader none of whose runs ended has only `unfinished`, after how many seconds they were ended. `limit` is
 * the larger of transfer and training, s.
 */
export function makeTables(runs) {
  return groups(runs, ({ set, count, step, machine }) => `${set} ${count} ${step} ${machine}`).map(
    (table) => {
      const { set, count, step, machine, linkSeconds } = table[0]
      const rows = groups(table, ({ loader }) => loader).map(makeRow)
      return { set, count, step, machine, limit: linkSeconds * Math.max(1, step), rows }
    },
  )
}

function makeRow(of) {
  const { loader } = of[0]
  const ended = of.filter(({ unfinished }) => unfinished === undefined)
  if (ended.length === 0) return { loader, runs: of.length, unfinished: of[0].unfinished }
  const figure = (read) => median(ended.map(read))
  return {
    ...{ loader, runs: ended.length, first: figure(({ first }) => first) },
    epochs: [0, 1].map((epoch) => figure(({ epochs }) => epochs[epoch])),
    copies: figure(({ copies }) => copies),
  }
}

export function groups(list, keyOf) {
  return [...Map.groupBy(list, keyOf).values()]
}

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}
