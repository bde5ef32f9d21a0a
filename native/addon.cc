// Glue between JavaScript and batch.h and slots.h, and nothing else: it checks every argument, and keeps nothing when it returns.
// (mapped_file_glue.cc has that of files; single_glue.cc that of single.h, and why it may keep what it keeps.)
// Many threads load it into one process, so it has no variable of its own either.
#include "arguments.h"
#include "batch.h"
#include "mapped_file_glue.h"
#include "single_glue.h"
#include "slots.h"

namespace {

using namespace millrace;

Tally admit(Word* words, const Shape& shape, const Batch& batch, double nowMs) {
  if (shape.sums == SUMS_BLOCKS) return Batches<Blocks>(words, shape).admit(batch, nowMs);
  if (shape.sums == SUMS_FENWICK) return Batches<Fenwick>(words, shape).admit(batch, nowMs);
  return Batches<Plain>(words, shape).admit(batch, nowMs);
}

/**
 * admitMany(words, fingerprints, costs, allowed, at, seen, plan, remaining?): decides the keys from FROM to TO, and returns where it
 * stopped: TO, or the first key that TypeScript has to decide. ADMITTED of `plan` says how many were admitted.
 */
Napi::Value admitMany(const Napi::CallbackInfo& info) {
  const auto words = viewOf<Word>(info, 0, napi_int32_array, "words: expected an Int32Array");
  const auto fingerprints = viewOf<Word>(info, 1, napi_int32_array, "fingerprints: expected an Int32Array");
  const auto allowed = viewOf<uint8_t>(info, 3, napi_uint8_array, "allowed: expected a Uint8Array");
  const auto at = viewOf<double>(info, 4, napi_float64_array, "at: expected a Float64Array");
  const auto seen = viewOf<Word>(info, 5, napi_int32_array, "seen: expected an Int32Array");
  const auto plan = viewOf<double>(info, 6, napi_float64_array, "params: expected a Float64Array");

  const Given given = planOf(info, plan);
  const Shape shape = shapeOf(info, given, words);
  if (!Reading::isSound(shape, given[PARAM_NOW_MS])) refuse(info, "params: nowMs");

  Batch batch{};
  batch.to = wholeFrom(info, given[PARAM_TO], 0, static_cast<double>(fingerprints.length / 2), "params: to");
  batch.from = wholeFrom(info, given[PARAM_FROM], 0, given[PARAM_TO], "params: from");
  batch.limit = static_cast<Word>(wholeFrom(info, given[PARAM_LIMIT], 1, MAX_TOTAL, "params: limit"));
  batch.readsClock = READS_CLOCK && given[PARAM_READS_CLOCK] != 0;
  if (allowed.length < batch.to) refuse(info, "allowed: too short");
  if (at.length < batch.to) refuse(info, "at: too short");
  if (seen.length / SEEN_WORDS < batch.to) refuse(info, "seen: too short");
  if (!info[7].IsUndefined()) {
    const auto remaining = viewOf<Word>(info, 7, napi_int32_array, "remaining: expected an Int32Array or undefined");
    if (remaining.length < batch.to) refuse(info, "remaining: too short");
    batch.remaining = remaining.data;
  }
  batch.fingerprints = fingerprints.data;
  batch.allowed = allowed.data;
  batch.at = at.data;
  batch.seen = seen.data;
  if (info[2].IsNumber()) {
    batch.cost = info[2].As<Napi::Number>().DoubleValue();
  } else {
    const auto costs = viewOf<double>(info, 2, napi_float64_array, "costs: expected a number or a Float64Array");
    if (costs.length < batch.to) refuse(info, "costs: too short");
    batch.costs = costs.data;
  }

  const Tally tally = admit(words.data, shape, batch, given[PARAM_NOW_MS]);
  if (tally.isBadCost) refuse(info, "costs: expected integers of 0 or more");
  plan.data[PARAM_ADMITTED] = tally.admitted;
  return Napi::Number::New(info.Env(), static_cast<double>(tally.stopped));
}

Word answerBy(Word* words, const Shape& shape, Word* ring, Word from, Word to, const Reading& reading) {
  if (shape.sums == SUMS_BLOCKS) return SlotAnswerer<Blocks>(words, shape).run(ring, from, to, reading);
  if (shape.sums == SUMS_FENWICK) return SlotAnswerer<Fenwick>(words, shape).run(ring, from, to, reading);
  return SlotAnswerer<Plain>(words, shape).run(ring, from, to, reading);
}

/**
 * answerRequests(words, ring, plan): answers what is asked in a ring from the cursor FROM to TO, which follows in at most SLOTS, by
 * NOW_MS; returns where it stopped. ADMITTED of `plan` says how many that was.
 */
Napi::Value answerRequests(const Napi::CallbackInfo& info) {
  const auto words = viewOf<Word>(info, 0, napi_int32_array, "words: expected an Int32Array");
  const auto ring = viewOf<Word>(info, 1, napi_int32_array, "ring: expected an Int32Array");
  const auto plan = viewOf<double>(info, 2, napi_float64_array, "params: expected a Float64Array");
  const Given given = planOf(info, plan);
  const Shape shape = shapeOf(info, given, words);
  if (shape.isSmooth) refuse(info, "params: expected the strict edge");
  if (!Reading::isSound(shape, given[PARAM_NOW_MS])) refuse(info, "params: nowMs");
  if (ring.length < SLOTS_AT + size_t{SLOTS} * SLOT_WORDS) refuse(info, "ring: too short");
  if (reinterpret_cast<uintptr_t>(ring.data) % sizeof(double) != 0) refuse(info, "ring: not at a multiple of 8 bytes");
  constexpr double MOST = 0x7fffffff;
  const auto cursorOf = [&](double value, const char* said) {
    if (!(value >= -MOST - 1 && value <= MOST) || value != std::floor(value)) refuse(info, said);
    return static_cast<Word>(static_cast<int32_t>(value));
  };
  const Word from = cursorOf(given[PARAM_FROM], "params: from");
  const Word to = cursorOf(given[PARAM_TO], "params: to");
  if (to - from > SLOTS) refuse(info, "params: to");
  const Word stopped = answerBy(words.data, shape, ring.data, from, to, Reading(shape, given[PARAM_NOW_MS]));
  plan.data[PARAM_ADMITTED] = stopped - from;
  return Napi::Number::New(info.Env(), static_cast<int32_t>(stopped));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  initSingle(exports);
  exports.Set("constantsHash", Napi::String::New(env, CONSTANTS_HASH));
  exports.Set("readsClock", Napi::Boolean::New(env, READS_CLOCK));
  InitMappedFile(env, exports);
  exports.Set("admitMany", Napi::Function::New<admitMany>(env, "admitMany"));
  exports.Set("answerRequests", Napi::Function::New<answerRequests>(env, "answerRequests"));
  return exports;
}

}  // namespace

NODE_API_MODULE(millrace, init)
