import type { SourceScheme } from '../../model/source-url.js'
import type { Fetcher, OpenFetcher } from '../source.js'
import { PeerFetcher } from './peer-fetcher.js'
import type { DonorDamage, PeerHome, PeerLocation } from './peer-home.js'
import { PeerReport } from './peer-report.js'
import type { Providers } from './plan-providers.js'

/** Options for a thread that reads from peers. */
export interface PeerThreadLocation extends PeerLocation {
  readonly providers: Providers
}

/** A question from such a thread to the staging. */
export type PeerQuestion =
  /** Answered with `Providers` once they differ from `known`. */
  | { readonly ask: 'providers'; readonly known: Providers }
  /** Answered with a boolean, as `PeerHome.take` is. */
  | { readonly ask: 'take'; readonly copyId: string }
  /** Answered with nothing once the damage is recorded. */
  | { readonly ask: 'damage'; readonly node: string; readonly damage: DonorDamage }
  /** Answered with the `StoreAccess` of the store. */
  | { readonly ask: 'store' }
  /** A question from the store's own fetcher, passed on. */
  | { readonly ask: 'of-store'; readonly question: unknown }

/** Where a thread finds the store that the dataset names. */
interface StoreAccess {
  readonly scheme: SourceScheme
  readonly location: unknown
}

/**
 * Creates an opener of fetchers that run in a transfer thread and read from peers, and from the store by those of
 * `stores`.
 */
export function createPeerOpener(stores: Readonly<Record<SourceScheme, OpenFetcher>>): OpenFetcher {
  return ({ location, connections, ask }) => {
    const place = location as PeerThreadLocation
    return new PeerFetcher({
      ...place,
      connections,
      report: new PeerReport(),
      home: openHome(place.providers, ask as Ask, async () => {
        const store = (await (ask as Ask)({ ask: 'store' })) as StoreAccess
        const askStore = (question?: unknown) => (ask as Ask)({ ask: 'of-store', question })
        return stores[store.scheme]({ location: store.location, connections, ask: askStore })
      }),
    })
  }
}

type Ask = (question: PeerQuestion) => Promise<unknown>

function openHome(first: Providers, ask: Ask, openOriginFetcher: () => Promise<Fetcher>): PeerHome {
  let providers = first
  const taken = new Map<string, Promise<boolean>>()
  const follow = async () => {
    for (;;) providers = (await ask({ ask: 'providers', known: providers })) as Providers
  }
  follow().catch(() => {}) // the last known providers are asked
  return {
    findProviders: () => providers,
    take(copyId) {
      const known = taken.get(copyId) ?? (ask({ ask: 'take', copyId }) as Promise<boolean>)
      taken.set(copyId, known)
      return known
    },
    async onDamage(node, damage) {
      await ask({ ask: 'damage', node, damage })
    },
    openOriginFetcher,
  }
}
