// An addon with faults that the sanitizers have to report in Node. `npm run dev -- test:sanitize` builds it like the
// real addon.
#include <node_api.h>

#include <atomic>
#include <cstdint>

namespace {

struct Words {
  int32_t* data;
  size_t length;
};

Words wordsOf(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given;
  Words words{nullptr, 0};
  napi_get_cb_info(env, info, &count, &given, nullptr, nullptr);
  auto** const data = reinterpret_cast<void**>(&words.data);
  napi_get_typedarray_info(env, given, nullptr, &words.length, data, nullptr, nullptr);
  return words;
}

/** Reads one word past the end. */
napi_value readPast(napi_env env, napi_callback_info info) {
  const Words words = wordsOf(env, info);
  napi_value read;
  napi_create_int32(env, words.data[words.length], &read);
  return read;
}

/** Adds 1 to the first word. Overflows if that is the largest integer. */
napi_value addOne(napi_env env, napi_callback_info info) {
  napi_value sum;
  napi_create_int32(env, wordsOf(env, info).data[0] + 1, &sum);
  return sum;
}

/**
 * Increments the first word by plain accesses, in two threads at once. They wait for each other at the second
 * word, whose accesses are relaxed and order nothing.
 */
napi_value raise(napi_env env, napi_callback_info info) {
  int32_t* const data = wordsOf(env, info).data;
  auto* const word = static_cast<volatile int32_t*>(data);
  const std::atomic_ref there(data[1]);
  there.fetch_add(1, std::memory_order_relaxed);
  while (there.load(std::memory_order_relaxed) < 2) continue;
  for (int i = 0; i < 1'000'000; i++) *word = (*word + 1) & 0xffff;
  return nullptr;
}

napi_value init(napi_env env, napi_value exports) {
  const napi_property_descriptor made[] = {
      {"readPast", nullptr, readPast, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"addOne", nullptr, addOne, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"raise", nullptr, raise, nullptr, nullptr, nullptr, napi_default, nullptr},
  };
  napi_define_properties(env, exports, 3, made);
  return exports;
}

}  // namespace

NAPI_MODULE(seeded, init)
