#pragma once

#include <napi.h>

/** Adds `single` and `series` to the exports. */
void initSingle(Napi::Env env, Napi::Object exports);
