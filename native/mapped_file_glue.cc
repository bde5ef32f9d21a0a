// The JavaScript side of mapped_file.h: every argument is checked, every failure of the system is thrown with its `code`.
#include <napi.h>

#include <cmath>
#include <memory>
#include <string>

#include "mapped_file.h"
#include "mapped_file_glue.h"

#if MILLRACE_MAPS_FILES
#include <uv.h>
#endif

namespace {

#if MILLRACE_MAPS_FILES

using millrace::Lock;
using millrace::Mapping;

// So that a length is exact as a double, and fits a typed array's limits on every Node.js that we run on.
constexpr double kMostBytes = 9007199254740991.0;

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
  if (!IsDescriptor(info) || !IsWhole(info[1], 1, kMostBytes)) return ThrowType(env, "expected (fd, bytes)");
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

// lock(fd, onlyAlone, patienceMs): 'alone' | 'shared' | 'busy'
Napi::Value LockFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info) || !info[1].IsBoolean() || !IsWhole(info[2], 0, 0x7fffffff)) {
    return ThrowType(env, "expected (fd, onlyAlone, patienceMs)");
  }
  return Shown(env, millrace::TakeLock(info[0].As<Napi::Number>().Int32Value(),
                                       info[1].As<Napi::Boolean>().Value(),
                                       info[2].As<Napi::Number>().Int32Value()));
}

// shareLock(fd, patienceMs): 'shared' | 'busy'
Napi::Value ShareFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info) || !IsWhole(info[1], 0, 0x7fffffff)) return ThrowType(env, "expected (fd, patienceMs)");
  return Shown(env, millrace::ShareLock(info[0].As<Napi::Number>().Int32Value(),
                                        info[1].As<Napi::Number>().Int32Value()));
}

// unlock(fd): undefined
Napi::Value UnlockFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info)) return ThrowType(env, "expected (fd)");
  const int error = millrace::Unlock(info[0].As<Napi::Number>().Int32Value());
  return error == 0 ? env.Undefined() : Throw(env, "flock", error);
}

// map(fd, bytes): { buffer: ArrayBuffer, fd: number }. The mapping, and the descriptor of its own that bears its lock,
// last until the buffer is collected or its thread ends; `fd` may be closed at once.
Napi::Value MapFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsDescriptor(info) || !IsWhole(info[1], 1, kMostBytes)) return ThrowType(env, "expected (fd, bytes)");
  auto mapping = std::make_unique<Mapping>();
  const int error = millrace::Map(info[0].As<Napi::Number>().Int32Value(),
                                  static_cast<size_t>(info[1].As<Napi::Number>().Int64Value()), mapping.get());
  if (error != 0) return Throw(env, "mmap", error);
  napi_value buffer;
  const auto finalize = [](napi_env, void*, void* hint) {
    std::unique_ptr<Mapping> ended(static_cast<Mapping*>(hint));
    millrace::Unmap(*ended);
  };
  const napi_status status =
      napi_create_external_arraybuffer(env, mapping->data, mapping->bytes, finalize, mapping.get(), &buffer);
  if (status != napi_ok) {
    millrace::Unmap(*mapping);
    if (!env.IsExceptionPending()) {
      Napi::Error::New(env, "this runtime allows no memory from outside of its own").ThrowAsJavaScriptException();
    }
    return env.Undefined();
  }
  const int fd = mapping.release()->fd;
  Napi::Object made = Napi::Object::New(env);
  made.Set("buffer", Napi::Value(env, buffer));
  made.Set("fd", Napi::Number::New(env, fd));
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
  files.Set("unlock", Napi::Function::New(env, UnlockFile, "unlock"));
  files.Set("map", Napi::Function::New(env, MapFile, "map"));
  exports.Set("files", files);
#else
  // Windows has neither flock nor POSIX mappings: without `files`, src/shared-file/ says so.
  (void)env;
  (void)exports;
#endif
}
