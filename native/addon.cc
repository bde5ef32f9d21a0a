// The addon: glue only. It is loaded by many threads, so there are no globals.
#include <napi.h>

#include "mapped_file_glue.h"

namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  InitMappedFile(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(millrace, Init)
