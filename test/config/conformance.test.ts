// run: full
// The conformance suite of limiters, on limiters with a configuration store whose keys have no policies. Groups and
// changes of the window are not possible there.
process.env.MILLRACE_TEST_CONFIG = '1'
for (const suite of ['one-rule', 'per-call', 'several-rules', 'refusal-options', 'units', 'units-rules'])
  await import(`../conformance/${suite}.test.js`)

export {}
