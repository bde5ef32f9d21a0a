// What AWS hands to a function for a request from an address, as its documentation shows them.
const forwarded = (address) => `198.51.100.1, ${address}`

/** Of an HTTP API of API Gateway, and of a function URL: version 2.0. */
const v2 = (address) => ({
  version: '2.0',
  routeKey: '$default',
  rawPath: '/',
  rawQueryString: '',
  headers: { host: 'api.example.com', 'x-forwarded-for': forwarded(address) },
  requestContext: {
    accountId: '123456789012',
    apiId: 'api-id',
    domainName: 'api.example.com',
    http: { method: 'GET', path: '/', protocol: 'HTTP/1.1', sourceIp: address, userAgent: 'agent' },
    requestId: 'id',
    routeKey: '$default',
    stage: '$default',
    time: '12/Mar/2020:19:03:58 +0000',
    timeEpoch: 1_583_348_638_390,
  },
  isBase64Encoded: false,
})

/** Of a REST API of API Gateway: version 1.0. */
const v1 = (address) => ({
  resource: '/',
  path: '/',
  httpMethod: 'GET',
  headers: { Host: 'api.example.com', 'X-Forwarded-For': forwarded(address) },
  multiValueHeaders: { Host: ['api.example.com'], 'X-Forwarded-For': [forwarded(address)] },
  queryStringParameters: null,
  multiValueQueryStringParameters: null,
  pathParameters: null,
  stageVariables: null,
  requestContext: {
    resourcePath: '/',
    httpMethod: 'GET',
    path: '/',
    identity: { sourceIp: address },
    stage: 'stage',
    requestId: 'id',
  },
  body: null,
  isBase64Encoded: false,
})

/** Of an Application Load Balancer. */
const balancer = (address) => ({
  requestContext: {
    elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:region:123456789012:targetgroup/a/b' },
  },
  httpMethod: 'GET',
  path: '/',
  queryStringParameters: {},
  headers: { host: 'api.example.com', 'x-forwarded-for': forwarded(address) },
  body: '',
  isBase64Encoded: false,
})

export const events = { v2, v1, balancer }
