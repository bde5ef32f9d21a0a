// Tests of nodes in which a second thread acts at one chosen step of a decision. Real threads meet there once
// in a million decisions.
#pragma once

#include <functional>
#include <utility>

#include "support.h"

namespace {

/** Calls `beforeSum` or `beforeCharge` once, before the next sum or charge. */
template <typename Sums>
struct Interrupted : Sums {
  using Sums::Sums;
  std::function<void()> beforeSum = nullptr;
  std::function<void()> beforeCharge = nullptr;

  uint64_t sum(size_t base, uint32_t slot, Word lap, uint32_t length) {
    if (const auto interrupt = std::exchange(beforeSum, nullptr)) interrupt();
    return Sums::sum(base, slot, lap, length);
  }
  Word charge(size_t base, Word e, uint32_t slot, Word lap, Word cost) {
    if (const auto interrupt = std::exchange(beforeCharge, nullptr)) interrupt();
    return Sums::charge(base, e, slot, lap, cost);
  }
};

/** A time whose tick has this slot. */
double inSlot(const Shape& shape, uint32_t slot) {
  const Word tick = Reading(shape, START_MS).tick;
  return START_MS + (shape.ring - tick % shape.ring + slot) * GRANULE_MS;
}

/**
 * A thread sums late in one lap. Meanwhile another thread charges the nodes for the next lap and is about to
 * commit. Node 0 then counts only the next lap, so the sum misses the units of its own window.
 */
void rejectsASumThatTheNextLapOvertakes() {
  Arena<Fenwick> arena(2, false, MANY_GRANULES);
  const double nowMs = inSlot(arena.shape, 4'600);
  const size_t way = arena.insert(KEY, nowMs);
  Cells<Interrupted<Fenwick>> cells(arena.words.data(), arena.shape);
  const size_t base = cells.base(way);
  CHECK(admits(cells, way, 5, 5, Reading(arena.shape, nowMs)), "the limit is admitted");
  bool wasInterrupted = false;
  cells.ring().sums().beforeSum = [&] {
    wasInterrupted = true;
    Cells<Fenwick> other(arena.words.data(), arena.shape);
    const Reading later(arena.shape, nowMs + 600 * GRANULE_MS);
    CHECK(other.enter(base, later), "the tick enters the next lap");
    const uint32_t slot = other.ring().slot(later.tick);
    const Word charged = other.ring().sums().charge(base, later.tick, slot, other.ring().lap(), 1);
    CHECK(charged == CHARGED, "the nodes of the next lap are charged");
  };
  CHECK(!admits(cells, way, 1, 5, Reading(arena.shape, nowMs + GRANULE_MS)), "the window holds the limit");
  CHECK(wasInterrupted, "the cell was summed");
}

/**
 * Another thread charges the same nodes whole laps later, before this thread does. The nodes keep the later
 * lap.
 */
template <typename Sums>
void aLateChargeDoesNotChangeNodesOfALaterLap(uint32_t laps) {
  Arena<Sums> arena(2, false, MANY_GRANULES);
  const double nowMs = inSlot(arena.shape, 70);
  const size_t way = arena.insert(KEY, nowMs);
  Cells<Interrupted<Sums>> cells(arena.words.data(), arena.shape);
  const Reading later(arena.shape, nowMs + static_cast<double>(laps) * arena.shape.ring * GRANULE_MS);
  Cells<Sums> other(arena.words.data(), arena.shape);
  cells.ring().sums().beforeCharge = [&] { CHECK(admits(other, way, 4, 5, later), "%u laps later", laps); };
  CHECK(admits(cells, way, 1, 5, Reading(arena.shape, nowMs)), "the last unit is admitted");
  // In the next block, so that the sum uses the nodes.
  const Reading after(arena.shape, later.nowMs + 130 * GRANULE_MS);
  CHECK(!admits(other, way, 1, 5, after), "after %u laps", laps);
}

/**
 * Checks that each node counts the sum of its buckets, and that no bucket is of another lap than its guard.
 */
template <typename Sums>
void checkNodes(Arena<Sums>& arena, size_t way) {
  const Shape& shape = arena.shape;
  const Word* cell = arena.words.data() + shape.waysAt + way * shape.wayWords;
  const Word* nodes = cell + BUCKETS + shape.ring;
  std::vector<Word> sums(shape.blocks);
  for (uint32_t slot = 0; slot < shape.ring; slot++) {
    const Word b = cell[BUCKETS + slot];
    const uint32_t block = slot / BLOCK;
    if ((b & COUNT) == 0) continue;
    CHECK((b & LAP) == (nodes[block] & LAP), "slot %u: %x below %x", slot, b, nodes[block]);
    sums[block] += b & COUNT;
  }
  Laps laps(shape.ring);
  const auto check = [&](uint32_t node, uint32_t from, uint32_t end) {
    const Word lap = laps.lapOf(from * BLOCK, cell[TICK]);
    Word sum = 0;
    for (uint32_t block = from; block < std::min(end, shape.blocks); block++) {
      if ((nodes[block] & LAP) == lap) sum += sums[block];
    }
    const Word counted = (nodes[node] & LAP) == lap ? nodes[node] & NODE_COUNT : 0;
    CHECK(counted == sum, "node %u: %x above %u", node, nodes[node], sum);
  };
  for (uint32_t i = 0; i < shape.blocks; i++) {
    const uint32_t span = shape.sums == SUMS_BLOCKS ? 1 : i == 0 ? shape.blocks : i & (~i + 1);
    check(i, i, i + span);
  }
  for (uint32_t i = 0; i < shape.upper; i++) check(shape.blocks + i, i * BLOCK, (i + 1) * BLOCK);
}

/** Admits at random times within three windows, and checks the nodes after each decision. */
template <typename Sums>
void nodesCountTheSumOfTheirBuckets(uint32_t granules) {
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Sums> cells(arena.words.data(), arena.shape);
  uint64_t random = 1;
  uint64_t tick = 0;
  for (int i = 0; i < 3'000; i++) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const uint64_t scale = i % 16 == 0 ? 3 * granules : i % 2 == 0 ? granules / 20 + 1 : 2;
    tick += (random >> 33) % scale;
    const Reading reading(arena.shape, START_MS + static_cast<double>(tick) * GRANULE_MS);
    decide(cells, way, 1 + (random >> 60), 60, reading);
    checkNodes(arena, way);
  }
}

/**
 * Another thread uses the limit up while a charge is in progress. The charge is taken out of the bucket and
 * all nodes.
 */
template <typename Sums>
void takesAnUncommittedChargeOutOfEveryNode() {
  Arena<Sums> arena(2, false, MANY_GRANULES);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Interrupted<Sums>> cells(arena.words.data(), arena.shape);
  Cells<Sums> other(arena.words.data(), arena.shape);
  const Reading reading(arena.shape, START_MS);
  cells.ring().sums().beforeCharge = [&] {
    CHECK(admits(other, way, 4, 5, reading), "the other thread admits most of the limit");
  };
  CHECK(!admits(cells, way, 2, 5, reading), "the cost does not fit any more");
  checkNodes(arena, way);
  CHECK(admits(other, way, 1, 5, reading), "the rest of the limit fits");
  checkNodes(arena, way);
}

}  // namespace
