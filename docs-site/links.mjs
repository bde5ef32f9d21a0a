// A plugin of TypeDoc: links of docstrings to a name that their module does not export lead to the module that does.
import { ReflectionKind } from 'typedoc'

export function load(app) {
  app.converter.on('resolveEnd', ({ project }) => linkAcross(project), 100) // before TypeDoc resolves links
}

function linkAcross(project) {
  const find = ([name, ...members], own) => {
    const modules = [own, ...project.children].filter((module) => module !== undefined)
    const module = modules.find((each) => each.getChildByName([name]) !== undefined)
    return module?.getChildByName([name, ...members])
  }
  for (const reflection of Object.values(project.reflections)) {
    const { comment } = reflection
    const parts = [
      ...(comment?.summary ?? []),
      ...(comment?.blockTags.flatMap(({ content }) => content) ?? []),
    ]
    for (const part of parts) {
      if (part.kind !== 'inline-tag' || part.tag !== '@link') continue
      part.target = find(part.text.trim().split(/[.#]/), moduleOf(reflection)) ?? part.target
    }
  }
}

function moduleOf(reflection) {
  for (let at = reflection; at !== undefined; at = at.parent) if (at.kindOf(ReflectionKind.Module)) return at
  return undefined
}
