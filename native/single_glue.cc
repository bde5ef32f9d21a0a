// The JavaScript side of single.h. Each limiter gets a function without arguments.
//
// This function keeps two pointers into JavaScript's memory between its calls, unlike every other export. The
// pointers stay valid for these reasons:
//
//   - A SharedArrayBuffer is never detached, and its memory never moves: it grows in place. So the memory
//     lasts as long as any array on it is reachable.
//   - The function holds both arrays as properties that cannot be changed or deleted. Every caller of the
//     function therefore keeps the arrays alive.
//   - An ArrayBuffer, mapped or not, can be transferred away. Arrays on one are refused.
//
// Only the function holds the arrays, and the addon has no reference to either. So all of it is collected
// together. The finalizer frees `Binding` then, or at the end of the thread. `Binding` does not free the
// arrays' memory, and no other thread uses it.
#include "single_glue.h"

#include <memory>

#include "arguments.h"
#include "single.h"

namespace {

using namespace millrace;

/** The data of one limiter's function. */
struct Binding {
  std::unique_ptr<Single> single;
  Call call;
};

napi_value run(napi_env env, napi_callback_info info) {
  void* data;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  const auto* binding = static_cast<Binding*>(data);
  binding->single->run(binding->call);
  return nullptr;
}

void check(napi_env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

View<Word> sharedWordsAt(const Napi::CallbackInfo& info, size_t index, const char* message) {
  const Napi::Env env = info.Env();
  const auto words = wordsAt(info, index, message);
  napi_value buffer;
  bool isDetachable = true;
  check(env, napi_get_typedarray_info(env, info[index], nullptr, nullptr, nullptr, &buffer, nullptr));
  check(env, napi_is_arraybuffer(env, buffer, &isDetachable));
  if (isDetachable) throw Napi::TypeError::New(env, message);
  return words;
}

/** single(words, params, call): returns the function that carries out the operation in `call` on `words`. */
Napi::Value single(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto words = sharedWordsAt(info, 0, "words: expected an Int32Array on a SharedArrayBuffer");
  const auto params = doublesAt(info, 1, "params: expected a Float64Array");
  const auto call = sharedWordsAt(info, 2, "call: expected an Int32Array on a SharedArrayBuffer");
  const Shape shape = shapeOf(info, paramsOf(info, params), words);
  if (call.length < CALL_WORDS) throwRangeError(info, "call: too short");
  if (!call.isAlignedForDoubles()) throwRangeError(info, "call: not at a multiple of 8 bytes");

  auto operations = withSums(shape, [&]<typename Sums>() -> std::unique_ptr<Single> {
    return std::make_unique<SingleBy<Sums>>(words.data, shape);
  });
  auto binding = std::make_unique<Binding>(Binding{std::move(operations), Call(call.data)});
  napi_value function;
  check(env, napi_create_function(env, "single", NAPI_AUTO_LENGTH, run, binding.get(), &function));
  const auto constant = [](const char* name, napi_value value) {
    return napi_property_descriptor{name, nullptr, nullptr, nullptr, nullptr, value, napi_default, nullptr};
  };
  const napi_property_descriptor held[] = {constant("words", info[0]), constant("call", info[2])};
  check(env, napi_define_properties(env, function, std::size(held), held));
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Binding*>(data); };
  check(env, napi_add_finalizer(env, function, binding.get(), finalize, nullptr, nullptr));
  binding.release();
  return Napi::Value(env, function);
}

}  // namespace

void initSingle(Napi::Env env, Napi::Object exports) {
  exports.Set("single", Napi::Function::New<single>(env, "single"));
}
