/** The names of the options that belong to a configuration store. */
export const CONFIG_OPTIONS: readonly string[] = [
  'config',
  'default',
  'onMiss',
  'configCache',
  'maxWindows',
  'onConfigError',
]
