/** Access keys, as the AWS credential chain resolves them. */
export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
  /** When they stop working, Unix epoch ms; absent = never. */
  readonly expiresAtMs?: number | undefined
}

/** Credentials of one user or pod for a source, and where it is, as dsc or kubelet hands them over. Plain data. */
export type HandedAccess =
  | {
      readonly scheme: 's3'
      /** URL of a server other than AWS. */
      readonly endpoint?: string | undefined
      readonly region?: string | undefined
      readonly isPathStyle: boolean
      readonly keys: Credentials
    }
  | {
      readonly scheme: 'hf'
      /** URL of the hub that the token is for. */
      readonly endpoint: string
      readonly token: string
    }

/** Handed-over credentials in use: `getKeys` also finds new keys in the place of expired ones. */
export type OwnAccess =
  | (Omit<Extract<HandedAccess, { readonly scheme: 's3' }>, 'keys'> & {
      readonly getKeys: () => Promise<Credentials> | Credentials
    })
  | Extract<HandedAccess, { readonly scheme: 'hf' }>

/** Longer than any session token of AWS. */
const MAX_SECRET_CHARACTERS = 16_384

/** Whether a handed-over text may become a header. */
export function isHeaderText(text: string): boolean {
  return text.length <= MAX_SECRET_CHARACTERS && /^[\x21-\x7e]+$/.test(text)
}
