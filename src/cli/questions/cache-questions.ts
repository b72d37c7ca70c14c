/** The questions about a new cache that `dsc init` and `dsc setup` ask alike. */
export const CACHE_QUESTIONS = {
  root: 'Folder for the copies',
  maxPercent: { question: 'Percent of that disk that copies may take', byDefault: '80' },
} as const
