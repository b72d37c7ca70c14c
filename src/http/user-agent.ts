/**
 * Identifies dsc in server logs; many servers refuse clients without it. Hard-coded, because threads and bundles would
 * each have to look for package.json; a test compares it with the version there.
 */
export const USER_AGENT = 'dsc/0.1 (+dataset staging and caching for GPU clusters)'
