#pragma once

#include <napi.h>

/** Adds `single` to the exports. */
void initSingle(Napi::Env env, Napi::Object exports);
