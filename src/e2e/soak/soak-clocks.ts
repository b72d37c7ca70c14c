import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NODES, type NodeName } from './plan-soak.js'

const LIBRARY = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
].find((path) => existsSync(path))

/** Clocks of the record and of every node that can be stepped while their processes run, by libfaketime. */
export class SoakClocks {
  readonly #directory: string
  readonly #aheadSeconds = new Map<string, number>()

  constructor(directory: string) {
    this.#directory = directory
    for (const owner of ['record', ...NODES]) this.#set(owner, 0)
  }

  /** Whether libfaketime is there; without it no clock steps. */
  get canStep(): boolean {
    return LIBRARY !== undefined
  }

  /** What a process needs in its environment to live by the clock of `owner`. */
  environmentOf(owner: 'record' | NodeName): Readonly<Record<string, string>> {
    if (LIBRARY === undefined) return {}
    return {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: this.#fileOf(owner),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    }
  }

  step(of: 'record' | NodeName | 'everybody', bySeconds: number): void {
    for (const owner of of === 'everybody' ? ['record', ...NODES] : [of])
      this.#set(owner, (this.#aheadSeconds.get(owner) ?? 0) + bySeconds)
  }

  #set(owner: string, seconds: number): void {
    this.#aheadSeconds.set(owner, seconds)
    writeFileSync(this.#fileOf(owner), `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}s\n`, { mode: 0o644 })
  }

  #fileOf(owner: string): string {
    return join(this.#directory, `clock-${owner}`)
  }
}
