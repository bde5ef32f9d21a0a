// Helpers for the words of an arena. src/memory/layout.ts describes the layout; constants.h has its
// constants.
#pragma once

#include <bit>

#include "words.h"

namespace millrace {

/** A stamp holds a refund mark in its low bits and the cell's generation above them. */
inline constexpr int STAMP_BITS = std::bit_width(SUNK);

/** The refund mark of a bucket, 0 to SUNK. */
inline Word refundsOf(Word bucket) { return (bucket & REFUNDS) / ONE_REFUND; }

}  // namespace millrace
