// `examples/envoy`: what its actions make of a request meets the limits of its file.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parse } from 'yaml'
import { readText } from '../../package/root.js'
import { type Descriptor, requestOf, withEnvoy } from './stage.js'

interface Action {
  readonly remote_address?: object
  readonly generic_key?: { descriptor_value: string }
  readonly request_headers?: { header_name: string; descriptor_key: string }
}
interface Limited {
  readonly rate_limits?: readonly { actions: readonly Action[] }[]
}

const { static_resources } = parse(readText('examples/envoy/envoy.yaml'))
const manager = static_resources.listeners[0].filter_chains[0].filters[0].typed_config
const filter = manager.http_filters[0].typed_config
const [host] = manager.route_config.virtual_hosts
const HEADERS: Readonly<Record<string, string>> = { ':method': 'POST' }

/** The descriptors that Envoy makes of a request. */
const descriptorsOf = ({ rate_limits = [] }: Limited): Descriptor[] =>
  rate_limits.map(({ actions }) =>
    actions.flatMap(({ remote_address, generic_key, request_headers }) => {
      if (remote_address !== undefined) return ['remote_address', '192.0.2.1']
      if (generic_key !== undefined) return ['generic_key', generic_key.descriptor_value]
      return [request_headers!.descriptor_key, HEADERS[request_headers!.header_name]!]
    }),
  )

test('each descriptor of its routes meets a limit', () =>
  withEnvoy(readText('examples/envoy/limits.yaml'), {}, async ({ client }) => {
    const api = host.routes[0].route
    const descriptors = [...descriptorsOf(host), ...descriptorsOf(api)]
    const { statuses } = await client.ask(requestOf(filter.domain, descriptors))
    assert.equal(
      statuses.map(({ current_limit }) => current_limit?.requests_per_unit),
      [100, 1_000],
    )
  }))

test('its clusters are there, and gRPC is that of the command it names', () => {
  const names = static_resources.clusters.map(({ name }: { name: string }) => name)
  const { cluster_name } = filter.rate_limit_service.grpc_service.envoy_grpc
  for (const name of [
    cluster_name,
    ...host.routes.map(({ route }: { route: { cluster: string } }) => route.cluster),
  ])
    assert.ok(names.includes(name), name)
  const { port_value } =
    static_resources.clusters[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address
  assert.match(readText('examples/envoy/envoy.yaml'), `--grpc-port ${port_value}`)
})

test.run()
