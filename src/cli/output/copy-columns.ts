import type { TableColumn } from './text-table.js'

/** The columns of the table of copies. */
export function copyColumns({ hasStripes }: { readonly hasStripes: boolean }): readonly TableColumn[] {
  return [
    { title: 'DATASET', minWidth: 12 },
    { title: 'NODE', minWidth: 7, dropOrder: 2 },
    { title: 'STATE' },
    ...(hasStripes ? [{ title: 'STRIPE', align: 'right' } as const] : []),
    { title: 'SIZE', align: 'right' },
    { title: 'KEPT BY' },
    { title: 'USED', align: 'right' },
    { title: 'LAST TASK', minWidth: 10, dropOrder: 3 },
    { title: 'VERSION', minWidth: 12, dropOrder: 4 },
  ]
}
