// Writes the API reference as Markdown, from the doc comments: one page for each export of
// package.json. Usage: node site/reference.mjs FOLDER
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application, Converter, ReflectionKind } from 'typedoc'
import { REFERENCE } from './sidebar.mjs'

const [folder] = process.argv.slice(2)
const root = join(dirname(fileURLToPath(import.meta.url)), '..')

const app = await Application.bootstrapWithPlugins({
  entryPoints: REFERENCE.map(({ source }) => join(root, source)),
  basePath: join(root, 'src'),
  tsconfig: join(root, 'site/tsconfig.json'),
  plugin: [fileURLToPath(import.meta.resolve('typedoc-plugin-markdown'))],
  outputs: [{ name: 'markdown', path: folder }],
  // The types are checked by `npm run types`, with the TypeScript of the project.
  skipErrorChecking: true,
  excludeInternal: true,
  excludePrivate: true,
  disableSources: true,
  readme: 'none',
  validation: { notExported: false, invalidLink: true, rewrittenLink: true, notDocumented: false },
  treatValidationWarningsAsErrors: true,
  logLevel: 'Warn',
  // Those of the Markdown plugin.
  router: 'module',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  hidePageTitle: false,
  pageTitleTemplates: { module: '{name}' },
  useCodeBlocks: true,
  // VitePress reads them, so that links do not depend on how it names headings.
  useCustomAnchors: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  propertyMembersFormat: 'table',
  tableColumnSettings: {
    hideDefaults: true,
    hideInherited: true,
    hideModifiers: true,
    hideOverrides: true,
    hideSources: true,
  },
  expandObjects: true,
})

// A module is named like what users import, not like its folder.
const names = new Map(
  REFERENCE.map(({ source, name }) => [source.replace(/^src\/|(\/index)?\.ts$/g, ''), name]),
)
app.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
  for (const module of context.project.getReflectionsByKind(ReflectionKind.Module))
    module.name = names.get(module.name) ?? module.name
})

const project = await app.convert()
if (!project) process.exit(1)
app.validate(project)
await app.generateOutputs(project)
process.exitCode = app.logger.hasErrors() ? 1 : 0
