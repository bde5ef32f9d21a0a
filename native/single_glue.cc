// The JavaScript side of single.h. Each rule of a limiter gets a function without arguments, and a limiter
// of several rules one more for all of them.
//
// Such a function keeps pointers into JavaScript's memory between its calls, unlike every other export. The
// pointers stay valid for these reasons:
//
//   - A SharedArrayBuffer is never detached, and its memory never moves: it grows in place. So the memory
//     lasts as long as any array on it is reachable.
//   - The function holds the arrays as properties that cannot be changed or deleted. Every caller of the
//     function therefore keeps the arrays alive.
//   - An ArrayBuffer, mapped or not, can be transferred away. Arrays on one are refused.
//
// Only the function holds the arrays, and the addon has no reference to any. So all of it is collected
// together. The finalizer frees `Binding` then, or at the end of the thread. `Binding` does not free the
// arrays' memory, and no other thread uses it.
#include "single_glue.h"

#include <memory>
#include <string>
#include <vector>

#include "algorithm.h"
#include "arguments.h"
#include "single.h"

namespace {

using namespace millrace;

/** The data of one limiter's function. */
struct Binding {
  std::vector<std::unique_ptr<Single>> rules;
  Word* calls;
};

const Binding& bindingOf(napi_env env, napi_callback_info info) {
  void* data;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  return *static_cast<const Binding*>(data);
}

napi_value runOne(napi_env env, napi_callback_info info) {
  const Binding& binding = bindingOf(env, info);
  binding.rules.front()->run(Call(binding.calls));
  return nullptr;
}

napi_value runAll(napi_env env, napi_callback_info info) {
  const Binding& binding = bindingOf(env, info);
  runInOrder(binding.rules, binding.calls);
  return nullptr;
}

void check(napi_env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

View<Word> sharedWordsOf(const Napi::CallbackInfo& info, const Napi::Value& value, const char* message) {
  const Napi::Env env = info.Env();
  const auto words = viewOf<Word>(info, value, napi_int32_array, message);
  napi_value buffer;
  bool isDetachable = true;
  check(env, napi_get_typedarray_info(env, value, nullptr, nullptr, nullptr, &buffer, nullptr));
  check(env, napi_is_arraybuffer(env, buffer, &isDetachable));
  if (isDetachable) throw Napi::TypeError::New(env, message);
  return words;
}

/** The operations on one arena. */
std::unique_ptr<Single> singleOf(const Napi::CallbackInfo& info, const Napi::Value& wordsOfArena,
                                 const Napi::Value& paramsOfArena) {
  const auto words =
      sharedWordsOf(info, wordsOfArena, "words: expected an Int32Array on a SharedArrayBuffer");
  const auto params =
      viewOf<double>(info, paramsOfArena, napi_float64_array, "params: expected a Float64Array");
  const Shape shape = shapeOf(info, paramsOf(info, params), words);
  return withAlgorithm(shape, [&]<typename Algorithm>() -> std::unique_ptr<Single> {
    return std::make_unique<SingleBy<Algorithm>>(words.data, shape);
  });
}

/** The memory of `count` calls. */
Word* callsOf(const Napi::CallbackInfo& info, const Napi::Value& value, size_t count) {
  const auto calls = sharedWordsOf(info, value, "call: expected an Int32Array on a SharedArrayBuffer");
  if (calls.length < count * CALL_WORDS) throwRangeError(info, "call: too short");
  if (!calls.isAlignedForDoubles()) throwRangeError(info, "call: not at a multiple of 8 bytes");
  return calls.data;
}

struct Held {
  std::string name;
  napi_value array;
};

/** Creates the function, which holds the arrays that it has pointers into. */
Napi::Value functionOf(Napi::Env env, std::unique_ptr<Binding> binding, napi_callback run, const char* name,
                       const std::vector<Held>& held) {
  napi_value function;
  check(env, napi_create_function(env, name, NAPI_AUTO_LENGTH, run, binding.get(), &function));
  for (const Held& each : held) {
    const napi_property_descriptor constant{each.name.c_str(), nullptr,    nullptr,      nullptr,
                                            nullptr,           each.array, napi_default, nullptr};
    check(env, napi_define_properties(env, function, 1, &constant));
  }
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Binding*>(data); };
  check(env, napi_add_finalizer(env, function, binding.get(), finalize, nullptr, nullptr));
  binding.release();
  return Napi::Value(env, function);
}

/** single(words, params, call): returns the function that carries out the operation in `call` on `words`. */
Napi::Value single(const Napi::CallbackInfo& info) {
  auto binding = std::make_unique<Binding>();
  binding->rules.push_back(singleOf(info, info[0], info[1]));
  binding->calls = callsOf(info, info[2], 1);
  return functionOf(info.Env(), std::move(binding), runOne, "single",
                    {{"words", info[0]}, {"call", info[2]}});
}

/**
 * series(words, params, calls): returns the function that decides by several rules (`runInOrder`). `words`
 * and `params` are arrays with an element for each rule.
 */
Napi::Value series(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsArray()) throw Napi::TypeError::New(env, "words: expected an array");
  if (!info[1].IsArray()) throw Napi::TypeError::New(env, "params: expected an array");
  const auto words = info[0].As<Napi::Array>();
  const auto params = info[1].As<Napi::Array>();
  const uint32_t count = words.Length();
  if (count < 1 || count > MOST_RULES || params.Length() != count) {
    throwRangeError(info, "words: expected an array as long as params");
  }
  auto binding = std::make_unique<Binding>();
  std::vector<Held> held;
  for (uint32_t i = 0; i < count; i++) {
    const Napi::Value own = words.Get(i);
    binding->rules.push_back(singleOf(info, own, params.Get(i)));
    held.push_back({"words" + std::to_string(i), own});
  }
  binding->calls = callsOf(info, info[2], count);
  held.push_back({"calls", info[2]});
  return functionOf(env, std::move(binding), runAll, "series", held);
}

}  // namespace

void initSingle(Napi::Env env, Napi::Object exports) {
  exports.Set("single", Napi::Function::New<single>(env, "single"));
  exports.Set("series", Napi::Function::New<series>(env, "series"));
}
