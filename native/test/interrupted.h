// Nodes above the buckets, where another thread comes in between at one place of a decision: what real threads meet once in
// a million times, made to happen.
#pragma once

#include <functional>
#include <utility>

#include "support.h"

namespace {

/** Sums before whose next sum, or charge, another thread comes in between. */
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

/** A reading whose tick is in that slot of some lap. */
double inSlot(const Shape& shape, uint32_t slot) {
  const Word tick = Reading(shape, START_MS).tick;
  return START_MS + (shape.ring - tick % shape.ring + slot) * GRANULE_MS;
}

/**
 * A sum late in one lap, while another thread has charged the nodes of the next one and is about to commit: node 0 counts
 * only that one now, and what the window that is summed had in it is missed.
 */
void aSumThatALapOvertakesDoesNotCount() {
  Arena<Fenwick> arena(2, false, MANY_GRANULES);
  const double nowMs = inSlot(arena.shape, 4'600);
  const size_t way = arena.insert(KEY, nowMs);
  Cells<Interrupted<Fenwick>> cells(arena.words.data(), arena.shape);
  const size_t base = cells.base(way);
  CHECK(admits(cells, way, 5, 5, Reading(arena.shape, nowMs)), "the limit");
  bool wasInterrupted = false;
  cells.ring().sums().beforeSum = [&] {
    wasInterrupted = true;
    Cells<Fenwick> other(arena.words.data(), arena.shape);
    const Reading later(arena.shape, nowMs + 600 * GRANULE_MS);
    CHECK(other.enter(base, later), "the next lap");
    const uint32_t slot = other.ring().slot(later.tick);
    CHECK(other.ring().sums().charge(base, later.tick, slot, other.ring().lap(), 1) == CHARGED, "its nodes");
  };
  CHECK(!admits(cells, way, 1, 5, Reading(arena.shape, nowMs + GRANULE_MS)), "the window has the limit in it");
  CHECK(wasInterrupted, "there was a sum");
}

/** A charge that is overtaken by whole laps, in which the same nodes have been charged: they stay as they are. */
template <typename Sums>
void aLateChargeTakesNoNodeBack(uint32_t laps) {
  Arena<Sums> arena(2, false, MANY_GRANULES);
  const double nowMs = inSlot(arena.shape, 70);
  const size_t way = arena.insert(KEY, nowMs);
  Cells<Interrupted<Sums>> cells(arena.words.data(), arena.shape);
  const Reading later(arena.shape, nowMs + static_cast<double>(laps) * arena.shape.ring * GRANULE_MS);
  Cells<Sums> other(arena.words.data(), arena.shape);
  cells.ring().sums().beforeCharge = [&] { CHECK(admits(other, way, 4, 5, later), "%u laps later", laps); };
  CHECK(admits(cells, way, 1, 5, Reading(arena.shape, nowMs)), "the last unit");
  // In the block behind, so that it is counted by its nodes.
  const Reading after(arena.shape, later.nowMs + 130 * GRANULE_MS);
  CHECK(!admits(other, way, 1, 5, after), "after %u laps", laps);
}

/** What nodes count for the ring that ends in the cell's tick is in the buckets below, and no bucket counts for another lap. */
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

/** Now and then an admission, anywhere in the next three windows: what nodes and guards say is true after each. */
template <typename Sums>
void nodesCountWhatTheirBucketsDo(uint32_t granules) {
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Sums> cells(arena.words.data(), arena.shape);
  uint64_t random = 1;
  uint64_t tick = 0;
  for (int i = 0; i < 3'000; i++) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const uint64_t scale = i % 16 == 0 ? 3 * granules : i % 2 == 0 ? granules / 20 + 1 : 2;
    tick += (random >> 33) % scale;
    decide(cells, way, 1 + (random >> 60), 60, Reading(arena.shape, START_MS + static_cast<double>(tick) * GRANULE_MS));
    checkNodes(arena, way);
  }
}

/** Others use up the limit while a charge is under way: it is taken out of all that it went into. */
template <typename Sums>
void aChargeThatIsNotCommittedLeavesEveryNode() {
  Arena<Sums> arena(2, false, MANY_GRANULES);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Interrupted<Sums>> cells(arena.words.data(), arena.shape);
  Cells<Sums> other(arena.words.data(), arena.shape);
  const Reading reading(arena.shape, START_MS);
  cells.ring().sums().beforeCharge = [&] { CHECK(admits(other, way, 4, 5, reading), "most of the limit"); };
  CHECK(!admits(cells, way, 2, 5, reading), "no room any more");
  checkNodes(arena, way);
  CHECK(admits(other, way, 1, 5, reading), "and the rest is there");
  checkNodes(arena, way);
}

}  // namespace
