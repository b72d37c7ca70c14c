/** A name for a source, with filters. */
export interface Dataset {
  readonly name: string
  readonly source: string
  readonly endpoint?: string
  readonly region?: string
  readonly pathStyle?: boolean
  readonly anonymous?: boolean
  readonly requesterPays?: boolean
  readonly profile?: string
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}
