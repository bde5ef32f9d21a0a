// The JavaScript side of mapped_file.h: every argument is checked, every failure of the system is thrown with its `code`.
#include <napi.h>

#include <cmath>
#include <memory>
#include <string>

#include "constants.h"
#include "mapped_file.h"
#include "mapped_file_glue.h"

#if MILLRACE_MAPS_FILES
#include <uv.h>
#endif

namespace {

#if MILLRACE_MAPS_FILES

using millrace::Lock;
using millrace::Mapping;

Napi::Value Throw(Napi::Env env, const char* call, int error) {
  const int code = uv_translate_sys_error(error);
  Napi::Error thrown =
      Napi::Error::New(env, std::string(uv_err_name(code)) + ": " + uv_strerror(code) + ", " + call);
  thrown.Set("code", Napi::String::New(env, uv_err_name(code)));
  thrown.Set("syscall", Napi::String::New(env, call));
  thrown.ThrowAsJavaScriptException();
  return env.Undefined();
}

Napi::Value ThrowType(Napi::Env env, const char* expected) {
  Napi::TypeError::New(env, expected).ThrowAsJavaScriptException();
  return env.Undefined();
}

bool IsWhole(const Napi::Value& value, double least, double most) {
  if (!value.IsNumber()) return false;
  const double number = value.As<Napi::Number>().DoubleValue();
  return number >= least && number <= most && std::floor(number) == number;
}

bool IsDescriptor(const Napi::CallbackInfo& info) { return IsWhole(info[0], 0, 0x7fffffff); }

// allocate(fd, bytes): undefined
Napi::Value AllocateFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info) || !IsWhole(info[1], 1, millrace::MAX_SAFE_INTEGER)) return ThrowType(env, "expected (fd, bytes)");
  const int error = millrace::Allocate(info[0].As<Napi::Number>().Int32Value(),
                                       info[1].As<Napi::Number>().Int64Value());
  return error == 0 ? env.Undefined() : Throw(env, "fallocate", error);
}

Napi::Value Shown(Napi::Env env, Lock lock) {
  if (lock == Lock::kFailed) return Throw(env, "flock", errno);
  return Napi::String::New(env, lock == Lock::kAlone    ? "alone"
                                : lock == Lock::kShared ? "shared"
                                                        : "busy");
}

// lock(fd, onlyAlone): 'alone' | 'shared' | 'busy'
Napi::Value LockFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info) || !info[1].IsBoolean()) return ThrowType(env, "expected (fd, onlyAlone)");
  return Shown(env, millrace::TryLock(info[0].As<Napi::Number>().Int32Value(), info[1].As<Napi::Boolean>().Value()));
}

// shareLock(fd): 'shared' | 'busy'
Napi::Value ShareFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info)) return ThrowType(env, "expected (fd)");
  return Shown(env, millrace::TryShareLock(info[0].As<Napi::Number>().Int32Value()));
}

// wallErrorMs(): number
Napi::Value WallErrorMs(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), millrace::WallErrorMs()); }

// A mapping and its end, which comes once: by `unmap`, or when its buffer is collected or its thread ends. Both run in the
// thread that made it, so no two of them at once. Both own it: either may be the last to go.
struct Held {
  Mapping mapping;
  bool isMapped = true;

  void End() {
    if (isMapped) millrace::Unmap(mapping);
    isMapped = false;
  }
};

// unmap(buffer): undefined. First the buffer is detached: from then on JavaScript sees arrays of no length, and the addon
// refuses them, so nothing can touch the memory that goes next. A buffer that is not the mapping's is left alone.
Napi::Value UnmapFile(const Napi::CallbackInfo& info, Held& held) {
  const Napi::Env env = info.Env();
  if (!held.isMapped) return env.Undefined();
  void* data = nullptr;
  size_t bytes = 0;
  if (!info[0].IsArrayBuffer() || napi_get_arraybuffer_info(env, info[0], &data, &bytes) != napi_ok ||
      data != held.mapping.data || bytes != held.mapping.bytes) {
    return ThrowType(env, "expected the buffer of this mapping");
  }
  if (napi_detach_arraybuffer(env, info[0]) != napi_ok) return ThrowType(env, "this buffer cannot be detached");
  held.End();
  return env.Undefined();
}

// map(fd, bytes): { buffer: ArrayBuffer, fd: number, unmap(buffer) }. The mapping, and the descriptor of its own that bears its
// lock, last until `unmap`, or until the buffer is collected or its thread ends; the `fd` given may be closed at once.
Napi::Value MapFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info) || !IsWhole(info[1], 1, millrace::MAX_SAFE_INTEGER)) return ThrowType(env, "expected (fd, bytes)");
  auto held = std::make_shared<Held>();
  Mapping& mapping = held->mapping;
  const int error = millrace::Map(info[0].As<Napi::Number>().Int32Value(),
                                  static_cast<size_t>(info[1].As<Napi::Number>().Int64Value()), &mapping);
  if (error != 0) return Throw(env, "mmap", error);
  napi_value buffer;
  const auto finalize = [](napi_env, void*, void* hint) {
    std::unique_ptr<std::shared_ptr<Held>> ended(static_cast<std::shared_ptr<Held>*>(hint));
    (*ended)->End();
  };
  auto owner = std::make_unique<std::shared_ptr<Held>>(held);
  const napi_status status =
      napi_create_external_arraybuffer(env, mapping.data, mapping.bytes, finalize, owner.get(), &buffer);
  if (status != napi_ok) {
    held->End();
    if (!env.IsExceptionPending()) {
      Napi::Error::New(env, "this runtime allows no memory from outside of its own").ThrowAsJavaScriptException();
    }
    return env.Undefined();
  }
  owner.release();
  Napi::Object made = Napi::Object::New(env);
  made.Set("buffer", Napi::Value(env, buffer));
  made.Set("fd", Napi::Number::New(env, mapping.fd));
  const auto unmap = [held](const Napi::CallbackInfo& info) { return UnmapFile(info, *held); };
  made.Set("unmap", Napi::Function::New(env, unmap, "unmap"));
  return made;
}

#endif

}  // namespace

void InitMappedFile(Napi::Env env, Napi::Object exports) {
#if MILLRACE_MAPS_FILES
  Napi::Object files = Napi::Object::New(env);
  files.Set("allocate", Napi::Function::New(env, AllocateFile, "allocate"));
  files.Set("lock", Napi::Function::New(env, LockFile, "lock"));
  files.Set("shareLock", Napi::Function::New(env, ShareFile, "shareLock"));
  files.Set("map", Napi::Function::New(env, MapFile, "map"));
  files.Set("wallErrorMs", Napi::Function::New(env, WallErrorMs, "wallErrorMs"));
  exports.Set("files", files);
#else
  // Windows has neither flock nor POSIX mappings: without `files`, src/shared-file/ says so.
  (void)env;
  (void)exports;
#endif
}
