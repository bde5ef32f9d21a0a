// Policies as items of DynamoDB: `{ key, version, policy }`, the policy as a map that everybody can read.
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { Listed, RawDocument } from '../../document-store.js'
import { documentIn, type PolicyDocument, UnreadableDocument } from '../../policy.js'

export type Item = Readonly<Record<string, AttributeValue>>

/** What tells whether an item is still the same. */
export interface Token {
  readonly version: AttributeValue | undefined
  /** A text that somebody else has written, and nobody counts its versions. */
  readonly text: AttributeValue.SMember | undefined
}

/** The attribute of a value of JSON. Undefined is left out. */
function attributeOf(value: unknown): AttributeValue {
  if (value === null) return { NULL: true }
  if (typeof value === 'string') return { S: value }
  if (typeof value === 'number') return { N: String(value) }
  if (typeof value === 'boolean') return { BOOL: value }
  if (Array.isArray(value)) return { L: value.map(attributeOf) }
  const given = Object.entries(value as object).filter(([, each]) => each !== undefined)
  return { M: Object.fromEntries(given.map(([name, each]) => [name, attributeOf(each)])) }
}

/** The value of an attribute. Undefined for types that JSON does not have: sets and bytes. */
export function jsonOf(attribute: AttributeValue | undefined): unknown {
  if (attribute === undefined) return undefined
  if (attribute.S !== undefined) return attribute.S
  if (attribute.N !== undefined) return Number(attribute.N)
  if (attribute.BOOL !== undefined) return attribute.BOOL
  if (attribute.NULL !== undefined) return null
  if (attribute.L !== undefined) return attribute.L.map(jsonOf)
  if (attribute.M === undefined) return undefined
  return Object.fromEntries(Object.entries(attribute.M).map(([name, each]) => [name, jsonOf(each)]))
}

/** The attributes of a document beside its key. */
export function attributesOf({ version, ...policy }: PolicyDocument): {
  version: AttributeValue
  policy: AttributeValue
} {
  return { version: attributeOf(version), policy: attributeOf(policy) }
}

export const keyOf = (item: Item): string => item.key?.S ?? ''

export function rawOf(item: Item): RawDocument {
  const token: Token = {
    version: item.version,
    text: item.policy?.S === undefined ? undefined : { S: item.policy.S },
  }
  return { document: documentOfItem(item), token }
}

export const listedOf = (item: Item): Listed => ({ key: keyOf(item), ...rawOf(item) })

function documentOfItem({ version, policy }: Item): unknown {
  const document = policy?.S === undefined ? jsonOf(policy) : documentIn(policy.S)
  if (document === undefined)
    return new UnreadableDocument(
      Object.keys(policy ?? {})[0],
      'a map or a JSON text as the attribute policy',
    )
  if (typeof document !== 'object' || document === null || document instanceof UnreadableDocument)
    return document
  return version === undefined ? document : { ...document, version: jsonOf(version) }
}

export interface Condition {
  readonly expression: string
  readonly names: Record<string, string>
  readonly values: Record<string, AttributeValue>
}

/** The condition that an item is still the one that was read. */
export function conditionOf(token: Token | undefined): Condition {
  if (token === undefined)
    return { expression: 'attribute_not_exists(#key)', names: { '#key': 'key' }, values: {} }
  const { version, text } = token
  const parts = ['attribute_exists(#key)', version ? '#version = :version' : 'attribute_not_exists(#version)']
  if (text !== undefined) parts.push('#policy = :text')
  return {
    expression: parts.join(' AND '),
    names: { '#key': 'key', '#version': 'version', ...(text && { '#policy': 'policy' }) },
    values: { ...(version && { ':version': version }), ...(text && { ':text': text }) },
  }
}
