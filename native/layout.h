// The map of an arena: the constants of src/memory/layout.ts, which explains them, under the same names. The addon
// exports this very list, and whoever loads it compares each with its own: two that differ are not used together.
#pragma once

#include "words.h"

#define MILLRACE_LAYOUT(X)       \
  X(LAYOUT_VERSION, 3)           \
  X(HEADER_LIMIT, 12)            \
  X(HEADER_RANGE_SUM, 13)        \
  X(HEADER_NEWEST, 16)           \
  X(HEADER_WORDS, 128)           \
  X(NAMES_AT, 128)               \
  X(MAX_BUCKETS, 1u << 20)       \
  X(SUMS_PLAIN, 0)               \
  X(SUMS_BLOCKS, 1)              \
  X(SUMS_FENWICK, 2)             \
  X(WAYS_PER_SET, 16)            \
  X(HI, 0)                       \
  X(ADM, 1)                      \
  X(TICK, 2)                     \
  X(AS_OF, 3)                    \
  X(UNTIL, 4)                    \
  X(BUCKETS, 5)                  \
  X(COUNT, 0x3fffff)             \
  X(BLOCKED, 0x3fffff)           \
  X(MAX_TOTAL, 0x3ffffe)         \
  X(STATE, 3u << 22)             \
  X(LIVE, 3u << 22)              \
  X(EPOCH, 0xff000000)           \
  X(ONE_EPOCH, 1u << 24)         \
  X(NOTED, 1u << 23)             \
  X(TIME, 0x7fffff)              \
  X(NO_NOTE, 0)                  \
  X(LAP, 0xff000000)             \
  X(LAPS, 256)                   \
  X(REFUNDS, 3u << 22)           \
  X(ONE_REFUND, 1u << 22)        \
  X(SUNK, 3)                     \
  X(GENERATION, 0)               \
  X(GIVING, 1)                   \
  X(ONE_TURN, 0x10000)           \
  X(BESIDE_WORDS, 2)             \
  X(NODE_COUNT, 0xffffff)        \
  X(BLOCK_BITS, 6)               \
  X(MOST_BLOCKS, 64)             \
  X(PER_SECOND, 16)              \
  X(FOR_EVER, 0xffffffff)

namespace millrace {

#define MILLRACE_CONSTANT(name, value) inline constexpr Word name = value;
MILLRACE_LAYOUT(MILLRACE_CONSTANT)
#undef MILLRACE_CONSTANT

inline constexpr Word ONE_LAP = ONE_EPOCH;  // both stand in the top eight bits

/** Buckets in a block. */
inline constexpr Word BLOCK = 1u << BLOCK_BITS;

inline Word refundsOf(Word bucket) { return (bucket >> 22) & 3; }

}  // namespace millrace
