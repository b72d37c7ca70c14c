const SUFFIXES: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
}

/** A quantity of Kubernetes (`500m`, `1.5Gi`, `1e3`) as a number; 0 for any other text. */
export function parseQuantity(raw: string | number): number {
  const [, digits, suffix] = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)$/.exec(String(raw)) ?? []
  const factor = SUFFIXES[suffix ?? '']
  return digits === undefined || factor === undefined ? 0 : Number(digits) * factor
}
