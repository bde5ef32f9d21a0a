// Glue between JavaScript and batch.h, and nothing else: it checks every argument, and keeps nothing when it returns.
// (mapped_file_glue.cc has that of files; single_glue.cc that of single.h, and why it may keep what it keeps.)
// Many threads load it into one process, so it has no variable of its own either.
#include "arguments.h"
#include "batch.h"
#include "mapped_file_glue.h"
#include "single_glue.h"

namespace {

using namespace millrace;

Tally admit(Word* words, const Shape& shape, const Batch& batch, double nowMs) {
  if (shape.sums == SUMS_BLOCKS) return Batches<Blocks>(words, shape).admit(batch, nowMs);
  if (shape.sums == SUMS_FENWICK) return Batches<Fenwick>(words, shape).admit(batch, nowMs);
  return Batches<Plain>(words, shape).admit(batch, nowMs);
}

/**
 * admitMany(words, fingerprints, costs, allowed, at, plan, remaining?): decides the keys from FROM to TO, and returns where it
 * stopped: TO, or the first key that TypeScript has to decide. ADMITTED of `plan` says how many were admitted.
 */
Napi::Value admitMany(const Napi::CallbackInfo& info) {
  const auto words = viewOf<Word>(info, 0, napi_int32_array, "words: expected an Int32Array");
  const auto fingerprints = viewOf<Word>(info, 1, napi_int32_array, "fingerprints: expected an Int32Array");
  const auto allowed = viewOf<uint8_t>(info, 3, napi_uint8_array, "allowed: expected a Uint8Array");
  const auto at = viewOf<double>(info, 4, napi_float64_array, "at: expected a Float64Array");
  const auto plan = viewOf<double>(info, 5, napi_float64_array, "plan: expected a Float64Array");

  const Given given = planOf(info, plan);
  const Shape shape = shapeOf(info, given, words);
  if (!Reading::isSound(shape, given[NOW_MS])) refuse(info, "plan: nowMs");

  Batch batch{};
  batch.to = wholeFrom(info, given[TO], 0, static_cast<double>(fingerprints.length / 2), "plan: to");
  batch.from = wholeFrom(info, given[FROM], 0, given[TO], "plan: from");
  batch.limit = static_cast<Word>(wholeFrom(info, given[LIMIT], 1, MAX_TOTAL, "plan: limit"));
  batch.readsClock = READS_CLOCK && given[READS_CLOCK_ITSELF] != 0;
  if (allowed.length < batch.to) refuse(info, "allowed: too short");
  if (at.length < batch.to) refuse(info, "at: too short");
  if (!info[6].IsUndefined()) {
    const auto remaining = viewOf<Word>(info, 6, napi_int32_array, "remaining: expected an Int32Array or undefined");
    if (remaining.length < batch.to) refuse(info, "remaining: too short");
    batch.remaining = remaining.data;
  }
  batch.fingerprints = fingerprints.data;
  batch.allowed = allowed.data;
  batch.at = at.data;
  if (info[2].IsNumber()) {
    batch.cost = info[2].As<Napi::Number>().DoubleValue();
  } else {
    const auto costs = viewOf<double>(info, 2, napi_float64_array, "costs: expected a number or a Float64Array");
    if (costs.length < batch.to) refuse(info, "costs: too short");
    batch.costs = costs.data;
  }

  const Tally tally = admit(words.data, shape, batch, given[NOW_MS]);
  if (tally.isBadCost) refuse(info, "costs: expected integers of 0 or more");
  plan.data[ADMITTED] = tally.admitted;
  return Napi::Number::New(info.Env(), static_cast<double>(tally.stopped));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto layout = Napi::Object::New(env);
#define MILLRACE_EXPORT(name, value) layout.Set(#name, Napi::Number::New(env, static_cast<int32_t>(name)));
  MILLRACE_LAYOUT(MILLRACE_EXPORT)
#undef MILLRACE_EXPORT
#define MILLRACE_EXPORT(name) layout.Set("PLAN_" #name, Napi::Number::New(env, name));
  MILLRACE_PLAN(MILLRACE_EXPORT)
#undef MILLRACE_EXPORT
  initSingle(exports, layout);
  exports.Set("layout", layout);
  exports.Set("readsClock", Napi::Boolean::New(env, READS_CLOCK));
  InitMappedFile(env, exports);
  exports.Set("admitMany", Napi::Function::New<admitMany>(env, "admitMany"));
  return exports;
}

}  // namespace

NODE_API_MODULE(millrace, init)
