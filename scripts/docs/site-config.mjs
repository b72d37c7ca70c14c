// The site of the documents: `npm run docs:site` builds it into dist-site/, with a search that needs no network.
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const DOCS = join(import.meta.dirname, '../../docs')

/** A menu entry, named as its page is. */
const page = (path) => ({
  text: /^# (.*)$/m.exec(readFileSync(join(DOCS, `${path}.md`), 'utf8'))[1],
  link: `/${path}`,
})
const group = (text, ...paths) => ({ text, collapsed: false, items: paths.map(page) })

export const site = {
  title: 'dsc',
  description: 'dsc caches training data on the disks of GPU nodes.',
  srcDir: 'pages', // a copy of docs/ beside VitePress, where its pages find Vue
  outDir: join(DOCS, '../dist-site'),
  rewrites: { 'README.md': 'index.md', 'recipes/README.md': 'recipes/index.md' },
  cleanUrls: false,
  // Files of the checkout beside docs/ are not part of the site.
  ignoreDeadLinks: [/\/(scripts|src|fixtures)\//, /\.py$/],
  buildEnd: ({ outDir }) => {
    cpSync(join(DOCS, 'recipes'), join(outDir, 'recipes'), {
      recursive: true,
      filter: (path) => !path.endsWith('.md'),
    })
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/start/laptop' },
      { text: 'Guides', link: '/guides/quotas' },
      { text: 'Understand', link: '/understand/life-of-a-copy' },
      { text: 'Reference', link: '/reference/commands' },
    ],
    sidebar: [
      group('Start', 'start/install', 'start/laptop', 'start/node', 'start/slurm', 'start/kubernetes'),
      group('Guides: data', 'guides/sources', 'guides/hugging-face', 'guides/coming-from'),
      group(
        'Guides: a node',
        'guides/quotas',
        'guides/look',
        'guides/report',
        'guides/scripting',
        'guides/operate',
      ),
      group('Guides: a cluster', 'guides/cluster', 'guides/stripes', 'guides/gateway'),
      group('Guides: training', 'guides/feed', 'guides/feed-formats', 'guides/exchange', 'guides/memory'),
      group('Questions', 'guides/faq'),
      group(
        'Understand',
        ...['architecture', 'life-of-a-copy', 'downloads', 'security', 'feed', 'glossary'].map(
          (name) => `understand/${name}`,
        ),
      ),
      group(
        'Reference',
        ...['commands', 'configuration', 'errors', 'metrics', 'compatibility'].map(
          (name) => `reference/${name}`,
        ),
        'benchmarks',
      ),
    ],
  },
}
