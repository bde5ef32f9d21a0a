// The types that every configuration store's module exports.
export type {
  ConfigChange,
  ConfigListener,
  ConfigStore,
  InvalidPolicy,
  ListOptions,
  PolicyEntry,
  PutOptions,
  StoredPolicy,
  SyncConfigStore,
} from './config-store.js'
export type { Policy, PolicyRule } from './policy.js'
