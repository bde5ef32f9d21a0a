// The JavaScript side of mapped_file.h. Each function checks its arguments, and throws the system's errors
// with their code.
#include <napi.h>

#include <cmath>
#include <limits>
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

Napi::Value throwSystemError(Napi::Env env, const char* call, int error) {
  const int code = uv_translate_sys_error(error);
  Napi::Error thrown =
      Napi::Error::New(env, std::string(uv_err_name(code)) + ": " + uv_strerror(code) + ", " + call);
  thrown.Set("code", Napi::String::New(env, uv_err_name(code)));
  thrown.Set("syscall", Napi::String::New(env, call));
  thrown.ThrowAsJavaScriptException();
  return env.Undefined();
}

Napi::Value throwTypeError(Napi::Env env, const char* expected) {
  Napi::TypeError::New(env, expected).ThrowAsJavaScriptException();
  return env.Undefined();
}

bool isWhole(const Napi::Value& value, double least, double most) {
  if (!value.IsNumber()) return false;
  const double number = value.As<Napi::Number>().DoubleValue();
  return number >= least && number <= most && std::floor(number) == number;
}

bool isDescriptor(const Napi::CallbackInfo& info) {
  return isWhole(info[0], 0, std::numeric_limits<int32_t>::max());
}

bool isDescriptorAndBytes(const Napi::CallbackInfo& info) {
  return isDescriptor(info) && isWhole(info[1], 1, millrace::MAX_SAFE_INTEGER);
}

int descriptorOf(const Napi::CallbackInfo& info) { return info[0].As<Napi::Number>().Int32Value(); }

int64_t bytesOf(const Napi::CallbackInfo& info) { return info[1].As<Napi::Number>().Int64Value(); }

/** allocate(fd, bytes): undefined */
Napi::Value allocateFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!isDescriptorAndBytes(info)) return throwTypeError(env, "expected (fd, bytes)");
  const int error = millrace::allocate(descriptorOf(info), bytesOf(info));
  return error == 0 ? env.Undefined() : throwSystemError(env, "fallocate", error);
}

Napi::Value toJavaScript(Napi::Env env, Lock lock) {
  if (lock == Lock::FAILED) return throwSystemError(env, "flock", errno);
  return Napi::String::New(env, lock == Lock::ALONE    ? "alone"
                                : lock == Lock::SHARED ? "shared"
                                                        : "busy");
}

/** lock(fd, onlyAlone): 'alone' | 'shared' | 'busy' */
Napi::Value lockFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!isDescriptor(info) || !info[1].IsBoolean()) return throwTypeError(env, "expected (fd, onlyAlone)");
  const bool onlyAlone = info[1].As<Napi::Boolean>().Value();
  return toJavaScript(env, millrace::tryLock(descriptorOf(info), onlyAlone));
}

/** shareLock(fd): 'shared' | 'busy' */
Napi::Value shareFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!isDescriptor(info)) return throwTypeError(env, "expected (fd)");
  return toJavaScript(env, millrace::tryShareLock(descriptorOf(info)));
}

/** wallErrorMs(): number */
Napi::Value wallErrorMs(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), millrace::wallErrorMs());
}

/**
 * A mapping that ends once: by `unmap`, or when its buffer is collected or its thread ends. All of these run
 * in the thread that made it. The `unmap` function and the buffer's finalizer share ownership, because either
 * may be the last to go.
 */
struct OwnedMapping {
  Mapping mapping;
  bool isMapped = true;

  void end() {
    if (isMapped) millrace::unmap(mapping);
    isMapped = false;
  }
};

/**
 * unmap(buffer): undefined. Detaches the buffer before it unmaps the memory. Arrays on a detached buffer have
 * length 0, and the addon refuses them, so nothing can access the memory afterwards. Refuses the buffer of
 * another mapping.
 */
Napi::Value unmapFile(const Napi::CallbackInfo& info, OwnedMapping& owned) {
  const Napi::Env env = info.Env();
  if (!owned.isMapped) return env.Undefined();
  void* data = nullptr;
  size_t bytes = 0;
  if (!info[0].IsArrayBuffer() || napi_get_arraybuffer_info(env, info[0], &data, &bytes) != napi_ok ||
      data != owned.mapping.data || bytes != owned.mapping.bytes) {
    return throwTypeError(env, "expected the buffer of this mapping");
  }
  if (napi_detach_arraybuffer(env, info[0]) != napi_ok) {
    return throwTypeError(env, "this buffer cannot be detached");
  }
  owned.end();
  return env.Undefined();
}

/**
 * map(fd, bytes): { buffer: ArrayBuffer, fd: number, unmap(buffer) }. The mapping has its own descriptor,
 * which holds the lock. The caller may close the `fd` that it gave.
 */
Napi::Value mapFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!isDescriptorAndBytes(info)) return throwTypeError(env, "expected (fd, bytes)");
  auto owned = std::make_shared<OwnedMapping>();
  Mapping& mapping = owned->mapping;
  const int error = millrace::map(descriptorOf(info), static_cast<size_t>(bytesOf(info)), &mapping);
  if (error != 0) return throwSystemError(env, "mmap", error);
  napi_value buffer;
  const auto finalize = [](napi_env, void*, void* hint) {
    std::unique_ptr<std::shared_ptr<OwnedMapping>> ended(static_cast<std::shared_ptr<OwnedMapping>*>(hint));
    (*ended)->end();
  };
  auto owner = std::make_unique<std::shared_ptr<OwnedMapping>>(owned);
  const napi_status status =
      napi_create_external_arraybuffer(env, mapping.data, mapping.bytes, finalize, owner.get(), &buffer);
  if (status != napi_ok) {
    owned->end();
    if (!env.IsExceptionPending()) {
      constexpr char MESSAGE[] = "this runtime allows no memory from outside of its own";
      Napi::Error::New(env, MESSAGE).ThrowAsJavaScriptException();
    }
    return env.Undefined();
  }
  owner.release();
  Napi::Object made = Napi::Object::New(env);
  made.Set("buffer", Napi::Value(env, buffer));
  made.Set("fd", Napi::Number::New(env, mapping.fd));
  const auto unmap = [owned](const Napi::CallbackInfo& info) { return unmapFile(info, *owned); };
  made.Set("unmap", Napi::Function::New(env, unmap, "unmap"));
  return made;
}

#endif

}  // namespace

void initMappedFile(Napi::Env env, Napi::Object exports) {
#if MILLRACE_MAPS_FILES
  Napi::Object files = Napi::Object::New(env);
  files.Set("allocate", Napi::Function::New(env, allocateFile, "allocate"));
  files.Set("lock", Napi::Function::New(env, lockFile, "lock"));
  files.Set("shareLock", Napi::Function::New(env, shareFile, "shareLock"));
  files.Set("map", Napi::Function::New(env, mapFile, "map"));
  files.Set("wallErrorMs", Napi::Function::New(env, wallErrorMs, "wallErrorMs"));
  exports.Set("files", files);
#else
  // Windows has neither flock nor POSIX mappings. src/shared-file/ throws if `files` is absent.
  (void)env;
  (void)exports;
#endif
}
