/**
 * Size of a page of memory and of the page cache, in bytes. The kernel writes a page whole or not at all, and every disk
 * takes direct writes of whole pages.
 */
export const PAGE_BYTES = 4096
