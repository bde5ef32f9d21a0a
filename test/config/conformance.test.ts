// run: full
// The conformance suite of limiters, on limiters with a configuration store whose keys have no policies. Groups and
// changes of the window are not possible there.
import './with-config.js'
import '../conformance/one-rule.test.js'
import '../conformance/per-call.test.js'
import '../conformance/several-rules.test.js'
import '../conformance/refusal-options.test.js'
import '../conformance/units.test.js'
import '../conformance/units-rules.test.js'
