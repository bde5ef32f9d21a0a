// Arguments that come from JavaScript, checked: a TypeError or a RangeError where they are not what they have to be.
#pragma once

#include <napi.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "shape.h"

/** The fields of `plan`: what is to be decided, and by what, as numbers. They are exported, and compared at load. */
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

namespace millrace {

#define MILLRACE_FIELD(name) name,
enum Plan : size_t { MILLRACE_PLAN(MILLRACE_FIELD) FIELDS };
#undef MILLRACE_FIELD

/** A copy: what has been checked stays so, whoever else may write to the plan. */
using Given = std::array<double, FIELDS>;

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

[[noreturn]] inline void refuse(const Napi::CallbackInfo& info, const char* said) {
  throw Napi::RangeError::New(info.Env(), said);
}

/** A field that is a whole number from `least` to `most`. */
inline uint64_t wholeFrom(const Napi::CallbackInfo& info, double value, double least, double most, const char* said) {
  if (!(value >= least && value <= most) || value != std::floor(value)) refuse(info, said);
  return static_cast<uint64_t>(value);
}

inline Given planOf(const Napi::CallbackInfo& info, const View<double>& plan) {
  if (plan.length < FIELDS) refuse(info, "plan: too short");
  Given given;
  std::copy_n(plan.data, given.size(), given.begin());
  return given;
}

/** The shape that a plan says, which `words` have room for. */
inline Shape shapeOf(const Napi::CallbackInfo& info, const Given& given, const View<Word>& words) {
  if (!(given[WINDOW_MS] >= 1 && given[WINDOW_MS] <= MAX_SAFE_INTEGER)) refuse(info, "plan: windowMs");
  if (!(std::abs(given[ORIGIN_MS]) <= MAX_SAFE_INTEGER)) refuse(info, "plan: originMs");
  const auto buckets = wholeFrom(info, given[GRANULES], 1, MAX_BUCKETS, "plan: buckets");
  const auto sets = wholeFrom(info, given[SETS], 2, 1u << 28, "plan: sets");
  const auto sums = wholeFrom(info, given[RANGE_SUM], SUMS_PLAIN, SUMS_FENWICK, "plan: sums");
  const Shape shape(given[WINDOW_MS], static_cast<uint32_t>(buckets), static_cast<uint32_t>(sets), given[ORIGIN_MS],
                    given[IS_SMOOTH] != 0, static_cast<Word>(sums));
  if (words.length < shape.words) refuse(info, "words: too short for that many sets and buckets");
  return shape;
}

}  // namespace millrace
