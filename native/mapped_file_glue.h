#pragma once

#include <napi.h>

/** Adds `files` to the exports: the system calls that src/shared-file/ needs. Adds nothing on Windows. */
void initMappedFile(Napi::Env env, Napi::Object exports);
