/** The part of WebAssembly that is used here; the compiler's library has it only for browsers. */
interface WasmRuntime {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Memory: new (limits: { readonly initial: number }) => { readonly buffer: ArrayBuffer }
  readonly Instance: new (
    module: object,
    imports: { readonly env: { readonly memory: object } },
  ) => { readonly exports: unknown }
}

/** The engine's WebAssembly. Modules of `assembleModule` import their memory as `env.memory`. */
export const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WasmRuntime }
