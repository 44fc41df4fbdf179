import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { placeOf, SIDEBAR } from '../sidebar.mjs'

const cache = join(import.meta.dirname, '../../.cache')

/** `docs/mutex.md` is `/docs/mutex` for VitePress. */
const linkTo = (page) => `/${placeOf(page).replace(/(?:(^|\/)index)?\.md$/, '$1')}`

export default defineConfig({
  title: 'Holdfast',
  description: 'Distributed locks for TypeScript, on the store you already run',
  lang: 'en',
  base: process.env.HOLDFAST_DOCS_BASE ?? '/',
  // scripts/docs.mjs puts the pages there.
  srcDir: join(cache, 'site-pages'),
  outDir: join(cache, 'site'),
  cacheDir: join(cache, 'vitepress'),
  metaChunk: true,
  // The search index is large, and loaded when somebody searches.
  vite: { build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 3000 } },
  markdown: {
    // Comments are to be readable, too.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-default' },
    anchor: { slugify: slugOf },
  },
  transformPageData(page, { siteConfig }) {
    const markdown = `${siteConfig.site.base}${page.relativePath}`
    page.frontmatter.markdown = markdown
    page.frontmatter.head ??= []
    page.frontmatter.head.push(['link', { rel: 'alternate', type: 'text/markdown', href: markdown }])
  },
  head: [
    [
      'link',
      { rel: 'icon', type: 'image/svg+xml', href: `${process.env.HOLDFAST_DOCS_BASE ?? '/'}logo.svg` },
    ],
  ],
  themeConfig: {
    logo: '/logo.svg',
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // The pages for users come before the reference, and the records last.
          searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 }, boostDocument },
        },
      },
    },
    outline: [2, 3],
    nav: [
      { text: 'Documentation', link: '/docs/', activeMatch: '^/docs/(?!three-runs)' },
      { text: 'Three runs', link: '/docs/three-runs' },
      { text: 'Reference', link: '/reference/holdfast', activeMatch: '^/reference/' },
      { text: 'Changelog', link: '/changelog' },
    ],
    sidebar: {
      '/reference/': [...groups(isReference, false), ...groups((group) => !isReference(group))],
      '/': groups(),
    },
  },
})

/** Those groups of the sidebar. */
function groups(which = () => true, isCollapsible = true) {
  return SIDEBAR.filter(which).map((group) => ({
    text: group.text,
    ...(group.collapsed && isCollapsible ? { collapsed: true } : {}),
    items: group.items.map(({ text, page }) => ({ text, link: linkTo(page) })),
  }))
}

function isReference({ items }) {
  return items.some(({ page }) => page.startsWith('reference/'))
}

/** As GitHub names headings, so that one link serves both. */
function slugOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\s-]/gu, '')
    .replace(/\s/g, '-')
}

function boostDocument(id) {
  if (id.includes('/reference/')) return 0.5
  return id.includes('/decisions/') ? 0.3 : 1
}
