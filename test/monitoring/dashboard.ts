import { readText } from '../package/root.js'

interface Target {
  readonly refId: string
  readonly expr: string
}
interface Panel {
  readonly type: string
  readonly title: string
  readonly targets?: readonly Target[]
}

export const DASHBOARD = 'examples/monitoring/grafana-dashboard.json'

/** Each query of the dashboard, as Grafana sends it if everything is selected and rates are of `rate`. */
export function queriesOf(rate: string): { readonly name: string; readonly query: string }[] {
  const { panels } = JSON.parse(readText(DASHBOARD)) as { panels: readonly Panel[] }
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr }) => ({
      name: `${title} ${refId}`,
      query: expr.replaceAll('$__rate_interval', rate).replace(/\$(?:job|limiter)\b/g, '.*'),
    })),
  )
}
