#pragma once

#include <napi.h>

/** Adds single(words, plan, call) to `exports`, and the places of a call to `layout`. */
void initSingle(Napi::Object exports, Napi::Object layout);
