/**
 * `a`·`b` + `c` of float32 values, rounded to float32 once, like the FMA instruction of a CPU and thus PyTorch's
 * kernels. The product is exact in float64; the sum is rounded to 53 bits first, which matters only when it lands
 * halfway between two float32 values.
 */
export function multiplyAdd(a: number, b: number, c: number): number {
  const product = a * b
  const sum = product + c
  const rounded = Math.fround(sum)
  const rest = sum - rounded
  // `sum + rest` is the float32 value on the other side exactly when `sum` is halfway between both.
  if (rest !== 0 && Math.fround(sum + rest) === sum + rest) return breakTie(product, c, rounded)
  return rounded
}

/** Rounds product + c, whose float64 sum is halfway between two float32 values, by what that sum has lost. */
function breakTie(product: number, c: number, rounded: number): number {
  const sum = product + c
  const added = sum - product
  const lost = product - (sum - added) + (c - added) // Knuth's two-sum: exact
  if (lost === 0 || !Number.isFinite(rounded)) return rounded
  const other = sum + (sum - rounded)
  return lost > 0 ? Math.max(rounded, other) : Math.min(rounded, other)
}
