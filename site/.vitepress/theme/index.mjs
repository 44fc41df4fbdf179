// The default theme without its web font, and a link from each page to its Markdown.
import { useData } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import './style.css'

const MarkdownLink = () => {
  const { frontmatter } = useData()
  return h('p', { class: 'markdown-link' }, [
    h('a', { href: frontmatter.value.markdown, target: '_self' }, 'This page as Markdown'),
  ])
}

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-footer-before': () => h(MarkdownLink) }),
}
