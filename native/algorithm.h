// The algorithms that the addon has: src/algorithms/select.ts lists the same.
#pragma once

#include "estimates.h"
#include "fixed_window.h"
#include "log_estimates.h"
#include "token_bucket.h"
#include "word_estimates.h"

namespace millrace {

/** The sliding window and the sliding counter. `Sums` sums the buckets: Linear, Blocks or Fenwick. */
template <typename Sums>
struct SlidingWindow {
  using Cells = millrace::Cells<Sums>;
  using Estimates = millrace::Estimates<Sums>;
};

/** A log of the last units. */
struct SlidingLog {
  using Cells = LogCells;
  using Estimates = LogEstimates;
};

/** All counts are in the admission word, as `Meter` reads it: FixedWindow or TokenBucket. */
template <typename Meter>
struct InOneWord {
  using Cells = WordCells<Meter>;
  using Estimates = WordEstimates<Meter>;
};

/**
 * Calls `body.template operator()<Algorithm>()` with the algorithm of this shape.
 *
 *     withAlgorithm(shape, [&]<typename Algorithm>() { return Decider<Algorithm>(words, shape)...; });
 */
template <typename Body>
auto withAlgorithm(const Shape& shape, Body body) {
  if (shape.counting == COUNTING_FIXED_WINDOW) return body.template operator()<InOneWord<FixedWindow>>();
  if (shape.counting == COUNTING_TOKEN_BUCKET) return body.template operator()<InOneWord<TokenBucket>>();
  if (shape.counting == COUNTING_LOG) return body.template operator()<SlidingLog>();
  if (shape.sums == SUMS_BLOCKS) return body.template operator()<SlidingWindow<Blocks>>();
  if (shape.sums == SUMS_FENWICK) return body.template operator()<SlidingWindow<Fenwick>>();
  return body.template operator()<SlidingWindow<Linear>>();
}

}  // namespace millrace
