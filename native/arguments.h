// Arguments that come from JavaScript, checked: a TypeError or a RangeError where they are not what they have to be.
#pragma once

#include <napi.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "shape.h"

namespace millrace {

/** A copy: what has been checked stays so, whoever else may write to the plan. */
using Given = std::array<double, PARAM_COUNT>;

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
  if (plan.length < PARAM_COUNT) refuse(info, "params: too short");
  Given given;
  std::copy_n(plan.data, given.size(), given.begin());
  return given;
}

/** The shape that a plan says, which `words` have room for. */
inline Shape shapeOf(const Napi::CallbackInfo& info, const Given& given, const View<Word>& words) {
  if (!(given[PARAM_WINDOW_MS] >= 1 && given[PARAM_WINDOW_MS] <= MAX_SAFE_INTEGER)) refuse(info, "params: windowMs");
  if (!(std::abs(given[PARAM_ORIGIN_MS]) <= MAX_SAFE_INTEGER)) refuse(info, "params: originMs");
  const auto buckets = wholeFrom(info, given[PARAM_BUCKETS], 1, MAX_BUCKETS, "params: buckets");
  const auto sets = wholeFrom(info, given[PARAM_SETS], 2, 1u << 28, "params: sets");
  const auto sums = wholeFrom(info, given[PARAM_SUMS], SUMS_LINEAR, SUMS_FENWICK, "params: sums");
  const Shape shape(given[PARAM_WINDOW_MS], static_cast<uint32_t>(buckets), static_cast<uint32_t>(sets), given[PARAM_ORIGIN_MS],
                    given[PARAM_IS_SMOOTH] != 0, static_cast<Word>(sums));
  if (words.length < shape.words) refuse(info, "words: too short for that many sets and buckets");
  return shape;
}

}  // namespace millrace
