// An addon of mistakes, each for a sanitizer to find in Node: `npm run test:sanitize` builds it as it builds ours.
#include <node_api.h>

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
  napi_get_typedarray_info(env, given, nullptr, &words.length, reinterpret_cast<void**>(&words.data), nullptr, nullptr);
  return words;
}

/** The word behind the last. */
napi_value readPast(napi_env env, napi_callback_info info) {
  const Words words = wordsOf(env, info);
  napi_value read;
  napi_create_int32(env, words.data[words.length], &read);
  return read;
}

/** One more than the first word, which may be the greatest. */
napi_value addOne(napi_env env, napi_callback_info info) {
  napi_value sum;
  napi_create_int32(env, wordsOf(env, info).data[0] + 1, &sum);
  return sum;
}

/** Raises the first word plainly, often enough for two threads to meet there. */
napi_value raise(napi_env env, napi_callback_info info) {
  auto* const word = static_cast<volatile int32_t*>(wordsOf(env, info).data);
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
