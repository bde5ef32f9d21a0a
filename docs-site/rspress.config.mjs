// The site of docs/: the same files that are on GitHub and in the package, with the navigation of navigation.json.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from '@rspress/core'

const DOCS = fileURLToPath(new URL('../docs/', import.meta.url))
const GITHUB = 'https://github.com/millrace/millrace'

const groups = JSON.parse(readFileSync(new URL('navigation.json', import.meta.url), 'utf8'))
const sidebar = groups.map(({ text, pages }) => ({
  text,
  items: pages.map((page) => (page.endsWith('/') ? folderItem(page) : pageItem(page))),
}))

/** A page, by the text of its first heading. */
function pageItem(page) {
  const [, text] = /^# (.+)$/m.exec(readFileSync(DOCS + page, 'utf8'))
  return { text: text.replaceAll(/[`\\]/g, ''), link: linkOf(page) }
}

/** The folder of the reference, closed until the reader is in it: the pages of each module of the package. */
function folderItem(folder) {
  const files = readdirSync(DOCS + folder).filter((file) => file.endsWith('.md') && file !== 'index.md')
  const modules = files.filter((file) => moduleOf(file) === undefined)
  const itemOf = (module) => {
    const own = files.filter((file) => moduleOf(file) === module).sort(functionsFirst)
    return { ...closed(folder + module), items: own.map((page) => pageItem(folder + page)) }
  }
  return { ...closed(`${folder}index.md`), items: modules.sort(millraceFirst).map(itemOf) }
}

function closed(page) {
  return { ...pageItem(page), collapsible: true, collapsed: true }
}

function functionsFirst(a, b) {
  return isFunction(b) - isFunction(a) || a.localeCompare(b)
}

function millraceFirst(a, b) {
  return (b === 'millrace.md') - (a === 'millrace.md') || a.localeCompare(b)
}

/** The page of the module of a page, by their names; undefined for that page itself. */
function moduleOf(file) {
  if (isModule(file)) return undefined
  const module = file.replace(/(?:^|\.)\w+\.md$/, '.md')
  return module === '.md' ? 'millrace.md' : module
}

/** Its heading is the name that is imported. */
function isModule(file) {
  return /^# millrace(?:\/|$)/m.test(readFileSync(`${DOCS}reference/api/${file}`, 'utf8'))
}

/** Its name begins in lower case. */
function isFunction(file) {
  return /(?:^|\.)[a-z]\w*\.md$/.test(file)
}

function linkOf(page) {
  return `/${page.replace(/index\.md$/, '').replace(/\.md$/, '')}`
}

export default defineConfig({
  root: DOCS,
  outDir: fileURLToPath(new URL('dist/', import.meta.url)),
  title: 'Millrace',
  description: 'A sliding-window rate limiter for Node.js servers',
  globalStyles: fileURLToPath(new URL('site.css', import.meta.url)),
  markdown: { link: { checkDeadLinks: true, checkAnchors: true } },
  themeConfig: {
    nav: groups.map(({ text, pages }) => ({ text, link: linkOf(pages[0]), activeMatch: matchOf(pages[0]) })),
    sidebar: { '/': sidebar },
    socialLinks: [{ icon: 'github', mode: 'link', content: GITHUB }],
    editLink: { docRepoBaseUrl: `${GITHUB}/tree/main/docs` },
  },
})

/** The folder of a group's pages; those at the top have none. */
function matchOf(page) {
  return page.includes('/') ? `^/${page.slice(0, page.indexOf('/'))}/` : '^/(tutorial)?$'
}
