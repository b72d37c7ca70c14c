import { createRequire } from 'node:module'

/** A function of the C library, by its declaration in C. */
export type FindFunction = <Call>(declaration: string) => Call

/**
 * Opens the C library that Node has loaded, for what Node cannot ask of the kernel. Returns why not where no prebuilt
 * binary of koffi fits this machine. Costs 8 ms, so only who needs it does it.
 */
export function openCLibrary(): FindFunction | { readonly obstacle: string } {
  try {
    const koffi = createRequire(import.meta.url)(`@koromix/koffi-linux-${process.arch}`)
    const library = koffi.load(null)
    return (declaration) => library.func(declaration)
  } catch (error) {
    return { obstacle: error instanceof Error ? error.message.split('\n')[0]! : String(error) }
  }
}
