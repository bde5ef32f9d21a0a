#pragma once

#include <napi.h>

/** Adds single(words, params, call) to `exports`. */
void initSingle(Napi::Object exports);
