// Helpers for the words of an arena. src/memory/layout.ts describes the layout; constants.h has its
// constants.
#pragma once

#include <bit>

#include "words.h"

namespace millrace {

/** A stamp holds a refund mark in its low bits and the cell's generation above them. */
inline constexpr int STAMP_BITS = std::bit_width(SUNK);

/** A record fits into the bits of a name that are not of the hash. */
static_assert(CELL_RECORD == MOST_RECORDS - 1 && (HASH & CELL_RECORD) == 0);

/** The index of the record that a word of CURRENT names. */
inline Word recordIn(Word current) { return current >> CURRENT_RECORD_SHIFT; }

/** The refund mark of a bucket, 0 to SUNK. */
inline Word refundsOf(Word bucket) { return (bucket & REFUNDS) / ONE_REFUND; }

}  // namespace millrace
