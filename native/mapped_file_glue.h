#pragma once

#include <napi.h>

// Puts `files` on the addon: what src/shared-file/ needs of the system. Nothing on Windows.
void InitMappedFile(Napi::Env env, Napi::Object exports);
