// The exports of the addon, except those for files (mapped_file_glue.cc) and for single operations
// (single_glue.cc). Each function checks its arguments and keeps no pointer after it returns. Many threads of
// a process load the addon, so it has no global variable.
#include <limits>

#include "algorithm.h"
#include "arguments.h"
#include "batch.h"
#include "clock.h"
#include "huge_pages.h"
#include "mapped_file_glue.h"
#include "request_server.h"
#include "single_glue.h"

namespace {

using namespace millrace;

/**
 * admitMany(words, fingerprints, costs, allowed, at, seen, params, remaining?): decides the keys from FROM to
 * before TO. Returns TO, or the index of the first key that TypeScript has to decide. Sets ADMITTED of
 * `params`, and NEAR.
 */
Napi::Value admitMany(const Napi::CallbackInfo& info) {
  const auto words = wordsAt(info, 0, "words: expected an Int32Array");
  const auto fingerprints = wordsAt(info, 1, "fingerprints: expected an Int32Array");
  const auto allowed = viewOf<uint8_t>(info, info[3], napi_uint8_array, "allowed: expected a Uint8Array");
  const auto at = doublesAt(info, 4, "at: expected a Float64Array");
  const auto seen = wordsAt(info, 5, "seen: expected an Int32Array");
  const auto paramsView = doublesAt(info, 6, "params: expected a Float64Array");

  const NativeParams params = paramsOf(info, paramsView);
  const Shape shape = shapeOf(info, params, words);
  const double nowMs = nowMsOf(info, params, shape);

  Batch batch{};
  const auto keys = static_cast<double>(fingerprints.length / 2);
  batch.to = static_cast<size_t>(wholeFrom(info, params[PARAM_TO], 0, keys, "params: to"));
  batch.from = static_cast<size_t>(wholeFrom(info, params[PARAM_FROM], 0, params[PARAM_TO], "params: from"));
  batch.limit = static_cast<Word>(wholeFrom(info, params[PARAM_LIMIT], 1, MAX_TOTAL, "params: limit"));
  batch.suspectFrom =
      static_cast<Word>(wholeFrom(info, params[PARAM_SUSPECT_FROM], 0, COUNT + 1, "params: suspectFrom"));
  batch.nearFrom = params[PARAM_NEAR_FROM];
  batch.readsClock = READS_CLOCK && params[PARAM_READS_CLOCK] != 0;
  if (allowed.length < batch.to) throwRangeError(info, "allowed: too short");
  if (at.length < batch.to) throwRangeError(info, "at: too short");
  if (seen.length / SEEN_WORDS < batch.to) throwRangeError(info, "seen: too short");
  if (!info[7].IsUndefined()) {
    const auto remaining = wordsAt(info, 7, "remaining: expected an Int32Array or undefined");
    if (remaining.length < batch.to) throwRangeError(info, "remaining: too short");
    batch.remaining = remaining.data;
  }
  batch.fingerprints = fingerprints.data;
  batch.allowed = allowed.data;
  batch.at = at.data;
  batch.seen = seen.data;
  if (info[2].IsNumber()) {
    batch.cost = info[2].As<Napi::Number>().DoubleValue();
  } else {
    const auto costs = doublesAt(info, 2, "costs: expected a number or a Float64Array");
    if (costs.length < batch.to) throwRangeError(info, "costs: too short");
    batch.costs = costs.data;
  }

  const BatchResult result = withAlgorithm(
      shape, [&]<typename Algorithm>() { return BatchDecider<Algorithm>(words.data, shape).run(batch, nowMs); });
  if (result.isBadCost) throwRangeError(info, "costs: expected integers of 0 or more");
  paramsView.data[PARAM_ADMITTED] = result.admitted;
  paramsView.data[PARAM_NEAR] = result.near;
  return Napi::Number::New(info.Env(), static_cast<double>(result.stopped));
}

/** A ring cursor: a signed 32-bit integer, as JavaScript has it. */
Word cursorOf(const Napi::CallbackInfo& info, double value, const char* message) {
  constexpr double MOST = std::numeric_limits<int32_t>::max();
  return static_cast<Word>(wholeFrom(info, value, -MOST - 1, MOST, message));
}

/**
 * serveRequests(words, ring, params): serves the requests from cursor FROM to before cursor TO, which is at
 * most SLOTS later, by the reading NOW_MS. Returns the cursor at which it stopped. Sets ADMITTED of `params`.
 */
Napi::Value serveRequests(const Napi::CallbackInfo& info) {
  const auto words = wordsAt(info, 0, "words: expected an Int32Array");
  const auto ring = wordsAt(info, 1, "ring: expected an Int32Array");
  const auto paramsView = doublesAt(info, 2, "params: expected a Float64Array");
  const NativeParams params = paramsOf(info, paramsView);
  const Shape shape = shapeOf(info, params, words);
  if (shape.isSmooth) throwRangeError(info, "params: expected the strict edge");
  const Reading reading(shape, nowMsOf(info, params, shape));
  if (ring.length < SLOTS_AT + size_t{SLOTS} * SLOT_WORDS) throwRangeError(info, "ring: too short");
  if (!ring.isAlignedForDoubles()) throwRangeError(info, "ring: not at a multiple of 8 bytes");
  const Word from = cursorOf(info, params[PARAM_FROM], "params: from");
  const Word to = cursorOf(info, params[PARAM_TO], "params: to");
  if (to - from > SLOTS) throwRangeError(info, "params: to");
  const Word stopped = withAlgorithm(shape, [&]<typename Algorithm>() {
    return RequestServer<Algorithm>(words.data, shape, ring.data).run(from, to, reading);
  });
  paramsView.data[PARAM_ADMITTED] = stopped - from;
  return Napi::Number::New(info.Env(), static_cast<int32_t>(stopped));
}

/** monotonicMs(): the system's monotonic clock in milliseconds. */
Napi::Value readMonotonicMs(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), monotonicMs());
}

/** useHugePages(words): returns 0, or the number of the system's error. */
Napi::Value askForHugePages(const Napi::CallbackInfo& info) {
  const auto words = wordsAt(info, 0, "words: expected an Int32Array");
  return Napi::Number::New(info.Env(), useHugePages(words.data, words.length * sizeof(Word)));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("constantsHash", Napi::String::New(env, CONSTANTS_HASH));
  if constexpr (READS_CLOCK) {
    exports.Set("monotonicMs", Napi::Function::New<readMonotonicMs>(env, "monotonicMs"));
  }
  if constexpr (HAS_HUGE_PAGES) {
    exports.Set("useHugePages", Napi::Function::New<askForHugePages>(env, "useHugePages"));
  }
  exports.Set("admitMany", Napi::Function::New<admitMany>(env, "admitMany"));
  exports.Set("serveRequests", Napi::Function::New<serveRequests>(env, "serveRequests"));
  initSingle(env, exports);
  initMappedFile(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(millrace, init)
