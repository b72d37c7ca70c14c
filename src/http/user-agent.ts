/**
 * Who asks, for the logs of servers; many refuse who does not say. Written down here, because threads and bundles would
 * each have to look for package.json; a test compares it with the version there.
 */
export const USER_AGENT = 'dsc/0.1 (+dataset staging and caching for GPU clusters)'
