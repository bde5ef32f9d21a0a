// What is worked out from the constants of the arena's layout, which src/memory/layout.ts explains.
#pragma once

#include <bit>

#include "words.h"

namespace millrace {

/** A stamp holds a mark in its low bits and the generation above them. */
inline constexpr int STAMP_BITS = std::bit_width(SUNK);

/** The mark of a bucket. */
inline Word refundsOf(Word bucket) { return (bucket & REFUNDS) / ONE_REFUND; }

}  // namespace millrace
