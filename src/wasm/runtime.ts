/** The part of WebAssembly that dsc uses; TypeScript's library declares it only for browsers. */
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

/** A module instance with its own memory. */
interface WasmInstance<Exports> {
  readonly buffer: ArrayBuffer
  readonly exports: Exports
}

/** Compiles the bytes of `assembleModule`. */
export function compileModule(bytes: Uint8Array<ArrayBuffer>): object {
  return new WebAssembly.Module(bytes)
}

/**
 * Instantiates a module of `assembleModule` with new memory of `bytes` (up to 4 GiB less a page) in whole pages.
 * Undefined: the engine has no memory left, and the caller must do without. Each memory takes about 10 GB of address
 * space, which schedulers limit by `ulimit -v`: under 30 GB, the third or fourth of a process, threads included, is
 * refused. (If not even one fits, Node makes the engine check bounds instead, and memories take only their own bytes.)
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
