// Imported before the conformance suite, which reads it as it is loaded.
process.env.MILLRACE_TEST_CONFIG = '1'

export {}
