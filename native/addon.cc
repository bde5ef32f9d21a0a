// Glue between JavaScript and batch.h (mapped_file_glue.cc has that of files), and nothing else: it checks every argument, and keeps nothing when it returns.
// Many threads load it into one process, so it has no variable of its own either.
#include <napi.h>

#include "batch.h"
#include "mapped_file_glue.h"

namespace {

using namespace millrace;

/** The fields of `plan`: what a batch is to be decided by, as numbers. They are exported, and compared at load. */
#define MILLRACE_PLAN(X) \
  X(WINDOW_MS)           \
  X(ORIGIN_MS)           \
  X(GRANULES)            \
  X(SETS)                \
  X(IS_SMOOTH)           \
  X(RANGE_SUM)           \
  X(LIMIT)               \
  X(FROM)                \
  X(TO)                  \
  X(NOW_MS)              \
  X(READS_CLOCK_ITSELF)  \
  X(ADMITTED)

#define MILLRACE_FIELD(name) name,
enum Plan : size_t { MILLRACE_PLAN(MILLRACE_FIELD) FIELDS };
#undef MILLRACE_FIELD

template <typename T>
struct View {
  T* data;
  size_t length;
};

/** A view of a typed array of this very type: a SharedArrayBuffer itself is refused by Node 20. */
template <typename T>
View<T> viewOf(const Napi::CallbackInfo& info, size_t index, napi_typedarray_type expected, const char* said) {
  napi_typedarray_type type;
  size_t length;
  void* data;
  const napi_status status =
      napi_get_typedarray_info(info.Env(), info[index], &type, &length, &data, nullptr, nullptr);
  if (status != napi_ok || type != expected) throw Napi::TypeError::New(info.Env(), said);
  return {static_cast<T*>(data), length};
}

[[noreturn]] void refuse(const Napi::CallbackInfo& info, const char* said) {
  throw Napi::RangeError::New(info.Env(), said);
}

/** A field that is a whole number from `least` to `most`. */
uint64_t wholeFrom(const Napi::CallbackInfo& info, double value, double least, double most, const char* said) {
  if (!(value >= least && value <= most) || value != std::floor(value)) refuse(info, said);
  return static_cast<uint64_t>(value);
}

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
  if (plan.length < FIELDS) refuse(info, "plan: too short");

  // A copy: what has been checked stays so, whoever else may write to the plan.
  std::array<double, FIELDS> given;
  std::copy_n(plan.data, given.size(), given.begin());
  if (!(given[WINDOW_MS] >= 1 && given[WINDOW_MS] <= MAX_SAFE_INTEGER)) refuse(info, "plan: windowMs");
  if (!(std::abs(given[ORIGIN_MS]) <= MAX_SAFE_INTEGER)) refuse(info, "plan: originMs");
  const auto buckets = wholeFrom(info, given[GRANULES], 1, MAX_BUCKETS, "plan: buckets");
  const auto sets = wholeFrom(info, given[SETS], 2, 1u << 28, "plan: sets");
  const auto sums = wholeFrom(info, given[RANGE_SUM], SUMS_PLAIN, SUMS_FENWICK, "plan: sums");
  const Shape shape(given[WINDOW_MS], static_cast<uint32_t>(buckets), static_cast<uint32_t>(sets), given[ORIGIN_MS],
                    given[IS_SMOOTH] != 0, static_cast<Word>(sums));
  if (words.length < shape.words) refuse(info, "words: too short for that many sets and buckets");
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
  exports.Set("layout", layout);
  exports.Set("readsClock", Napi::Boolean::New(env, READS_CLOCK));
  InitMappedFile(env, exports);
  exports.Set("admitMany", Napi::Function::New<admitMany>(env, "admitMany"));
  return exports;
}

}  // namespace

NODE_API_MODULE(millrace, init)
