// The JavaScript side of single.h: a function for each limiter, without arguments, that has all it needs at hand.
//
// It keeps two pointers into memory of JavaScript's beyond the call that gave them, which nothing else here does. They stay
// good: a SharedArrayBuffer is never detached, and its memory never moves (one that grows does so in place), so it lasts as
// long as any array on it is alive; and the function itself holds both arrays, as properties that nobody can change or
// delete. Whoever can call it keeps them alive so; and as the arrays are held by it alone, and by no reference of ours, all of
// it goes at once when nobody can. Then, or at the end of its thread if that comes first, `Single` is freed; it has no
// pointer of its own to free, and no thread but this one has ever seen it. An ArrayBuffer, of a file or not, may be
// transferred away, and is refused.
#include "single_glue.h"

#include <memory>

#include "arguments.h"
#include "single.h"

namespace {

using namespace millrace;

struct Held {
  std::unique_ptr<Single> single;
  Call call;
};

napi_value run(napi_env env, napi_callback_info info) {
  void* data;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  const auto* held = static_cast<Held*>(data);
  held->single->run(held->call);
  return nullptr;
}

std::unique_ptr<Single> singleOf(Word* words, const Shape& shape) {
  if (shape.sums == SUMS_BLOCKS) return std::make_unique<SingleBy<Blocks>>(words, shape);
  if (shape.sums == SUMS_FENWICK) return std::make_unique<SingleBy<Fenwick>>(words, shape);
  return std::make_unique<SingleBy<Plain>>(words, shape);
}

void check(napi_env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

View<Word> sharedWords(const Napi::CallbackInfo& info, size_t index, const char* said) {
  const auto words = viewOf<Word>(info, index, napi_int32_array, said);
  napi_value buffer;
  bool isDetachable = true;
  check(info.Env(), napi_get_typedarray_info(info.Env(), info[index], nullptr, nullptr, nullptr, &buffer, nullptr));
  check(info.Env(), napi_is_arraybuffer(info.Env(), buffer, &isDetachable));
  if (isDetachable) throw Napi::TypeError::New(info.Env(), said);
  return words;
}

/** single(words, plan, call): the function that decides, by what stands in `call`, on `words`. */
Napi::Value single(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto words = sharedWords(info, 0, "words: expected an Int32Array on a SharedArrayBuffer");
  const auto plan = viewOf<double>(info, 1, napi_float64_array, "params: expected a Float64Array");
  const auto call = sharedWords(info, 2, "call: expected an Int32Array on a SharedArrayBuffer");
  const Shape shape = shapeOf(info, planOf(info, plan), words);
  if (call.length < CALL_WORDS) refuse(info, "call: too short");
  if (reinterpret_cast<uintptr_t>(call.data) % sizeof(double) != 0) refuse(info, "call: not at a multiple of 8 bytes");

  auto held = std::make_unique<Held>(Held{singleOf(words.data, shape), Call(call.data)});
  napi_value made;
  check(env, napi_create_function(env, "single", NAPI_AUTO_LENGTH, run, held.get(), &made));
  const auto fixed = [](const char* name, napi_value value) {
    return napi_property_descriptor{name, nullptr, nullptr, nullptr, nullptr, value, napi_default, nullptr};
  };
  const napi_property_descriptor kept[] = {fixed("words", info[0]), fixed("call", info[2])};
  check(env, napi_define_properties(env, made, std::size(kept), kept));
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Held*>(data); };
  check(env, napi_add_finalizer(env, made, held.get(), finalize, nullptr, nullptr));
  held.release();
  return Napi::Value(env, made);
}

}  // namespace

void initSingle(Napi::Object exports) {
  const Napi::Env env = exports.Env();
  exports.Set("single", Napi::Function::New<single>(env, "single"));
}
