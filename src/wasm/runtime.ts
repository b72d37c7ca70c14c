/** The part of WebAssembly that is used here; the compiler's library has it only for browsers. */
interface WasmRuntime {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Memory: new (limits: { readonly initial: number }) => { readonly buffer: ArrayBuffer }
  readonly Instance: new (
    module: object,
    imports: { readonly env: { readonly memory: object } },
  ) => { readonly exports: unknown }
}

/** The engine's WebAssembly. */
export const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WasmRuntime }

export const PAGE_BYTES = 65_536

/** A module at work on a memory of its own. */
interface WasmInstance<Exports> {
  readonly buffer: ArrayBuffer
  readonly exports: Exports
}

/** Compiles what `assembleModule` made. */
export function compileModule(bytes: Uint8Array<ArrayBuffer>): object {
  return new WebAssembly.Module(bytes)
}

/**
 * Sets a module of `assembleModule` to work on a new memory of `bytes` (up to 4 GiB less a page) in whole pages.
 * Undefined: the engine has no memory to give, and who asks has to do without. Each takes some 10 GB of addresses,
 * which schedulers bound by `ulimit -v`: under 30 GB the third or fourth of a process, threads included, is refused.
 * (Where not even one fits, Node has the engine check bounds instead, and memories take no more than their bytes.)
 */
export function findInstance<Exports>(module: object, bytes: number): WasmInstance<Exports> | undefined {
  try {
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE_BYTES) })
    const { exports } = new WebAssembly.Instance(module, { env: { memory } })
    return { buffer: memory.buffer, exports: exports as Exports }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
