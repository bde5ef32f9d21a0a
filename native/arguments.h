// Checks of the arguments that come from JavaScript. Each throws a TypeError or a RangeError.
#pragma once

#include <napi.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "shape.h"

namespace millrace {

/** A copy of the params, indexed by PARAM_*. Other threads may change the original after it was checked. */
using NativeParams = std::array<double, PARAM_COUNT>;

template <typename T>
struct View {
  T* data;
  size_t length;

  bool isAlignedForDoubles() const { return reinterpret_cast<uintptr_t>(data) % sizeof(double) == 0; }
};

/** A view of a typed array of exactly this type. Node 20 does not accept a SharedArrayBuffer itself. */
template <typename T>
View<T> viewOf(const Napi::CallbackInfo& info, const Napi::Value& value, napi_typedarray_type expected,
               const char* message) {
  napi_typedarray_type type;
  size_t length;
  void* data;
  const napi_status status =
      napi_get_typedarray_info(info.Env(), value, &type, &length, &data, nullptr, nullptr);
  if (status != napi_ok || type != expected) throw Napi::TypeError::New(info.Env(), message);
  return {static_cast<T*>(data), length};
}

inline View<Word> wordsAt(const Napi::CallbackInfo& info, size_t index, const char* message) {
  return viewOf<Word>(info, info[index], napi_int32_array, message);
}

inline View<double> doublesAt(const Napi::CallbackInfo& info, size_t index, const char* message) {
  return viewOf<double>(info, info[index], napi_float64_array, message);
}

[[noreturn]] inline void throwRangeError(const Napi::CallbackInfo& info, const char* message) {
  throw Napi::RangeError::New(info.Env(), message);
}

/** Checks that `value` is a whole number from `least` to `most`. */
inline int64_t wholeFrom(const Napi::CallbackInfo& info, double value, double least, double most,
                         const char* message) {
  if (!(value >= least && value <= most) || value != std::floor(value)) throwRangeError(info, message);
  return static_cast<int64_t>(value);
}

inline NativeParams paramsOf(const Napi::CallbackInfo& info, const View<double>& view) {
  if (view.length < PARAM_COUNT) throwRangeError(info, "params: too short");
  NativeParams params;
  std::copy_n(view.data, params.size(), params.begin());
  return params;
}

/** The shape that the params describe. Checks that `words` is long enough for it. */
inline Shape shapeOf(const Napi::CallbackInfo& info, const NativeParams& params, const View<Word>& words) {
  constexpr double MOST_SETS = 1u << 28;  // so that their words fit into 64 bits
  const double windowMs = params[PARAM_WINDOW_MS];
  const double originMs = params[PARAM_ORIGIN_MS];
  if (!(windowMs >= 1 && windowMs <= MAX_SAFE_INTEGER)) throwRangeError(info, "params: windowMs");
  if (!(std::abs(originMs) <= MAX_SAFE_INTEGER)) throwRangeError(info, "params: originMs");
  const double offsetMs = params[PARAM_OFFSET_MS];
  if (!(std::abs(offsetMs) <= MAX_SAFE_INTEGER)) throwRangeError(info, "params: offsetMs");
  const auto counting = static_cast<Word>(wholeFrom(info, params[PARAM_COUNTING], COUNTING_BUCKETS,
                                                    COUNTING_LOG, "params: counting"));
  const double mostBuckets = counting == COUNTING_LOG ? MOST_LOG_TICKS : MAX_BUCKETS;
  const auto buckets = wholeFrom(info, params[PARAM_BUCKETS], 1, mostBuckets, "params: buckets");
  const auto sets = wholeFrom(info, params[PARAM_SETS], MIN_SETS, MOST_SETS, "params: sets");
  const auto sums = wholeFrom(info, params[PARAM_SUMS], SUMS_LINEAR, SUMS_FENWICK, "params: sums");
  const auto cellBuckets = wholeFrom(info, params[PARAM_CELL_BUCKETS], 1, mostBuckets, "params: cellBuckets");
  const auto record = wholeFrom(info, params[PARAM_RECORD], 0, MOST_RECORDS - 1, "params: record");
  const auto shift = wholeFrom(info, params[PARAM_SHIFT], 0, 4294967295.0, "params: shift");
  const auto units = wholeFrom(info, params[PARAM_UNITS], 0, MOST_UNITS, "params: units");
  const bool isBucket = counting == COUNTING_TOKEN_BUCKET;
  const bool isLog = counting == COUNTING_LOG;
  if ((isBucket || isLog) && units == 0) throwRangeError(info, "params: units");
  if ((isBucket && units % buckets != 0) || (isLog && units > MOST_IN_LOG)) {
    throwRangeError(info, "params: units");
  }
  const Shape shape(windowMs, static_cast<uint32_t>(buckets), static_cast<uint32_t>(sets), originMs,
                    params[PARAM_IS_SMOOTH] != 0, static_cast<Word>(sums), static_cast<uint32_t>(cellBuckets),
                    static_cast<Word>(record), static_cast<Word>(shift),
                    {counting, static_cast<uint32_t>(units), offsetMs});
  if (shape.buckets > shape.mostBuckets) throwRangeError(info, "params: buckets");
  if (words.length < shape.words) throwRangeError(info, "words: too short for that many sets and buckets");
  return shape;
}

/** NOW_MS of the params. */
inline double nowMsOf(const Napi::CallbackInfo& info, const NativeParams& params, const Shape& shape) {
  if (!Reading::isSound(shape, params[PARAM_NOW_MS])) throwRangeError(info, "params: nowMs");
  return params[PARAM_NOW_MS];
}

}  // namespace millrace
