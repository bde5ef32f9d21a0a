// Tests of records: shifted ticks, cells of other records, and changes of CURRENT. answers.h comes before
// request_server.h, for the reason that it gives.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "answers.h"

#include "../request_server.h"

namespace {

constexpr Word LIMIT = 5;
/** The record of the tests, and a later one. */
constexpr Word RECORD = 5;
constexpr Word LATER = 9;
/** HI: the cell changes its record. */
constexpr Word CONVERTING = ~HASH & ~CELL_RECORD;

constexpr Word currentOf(Word record, Word limit) { return record << CURRENT_RECORD_SHIFT | limit; }

void aTickHasTheShiftOfItsRecordAndWraps() {
  const int64_t modulus = shapeBy<Linear>(0, 0).modulus;
  const auto wraps = static_cast<Word>(modulus);
  const auto half = static_cast<Word>(modulus / 2);
  for (const Word shift : {0u, 1u, 4'000'000u, half, wraps - 1, wraps, wraps + 1, 0xffffffffu}) {
    const Shape shape = shapeBy<Linear>(RECORD, shift);
    CHECK(shape.modulus == modulus, "the modulus is that of the cells");
    // Ticks on both sides of 0, of the wrap of this shift, and of later wraps.
    for (const int64_t middle : {int64_t{0}, modulus - shift, 2 * modulus - shift, -modulus - shift}) {
      for (int64_t tick = middle - 2; tick <= middle + 2; tick++) {
        const Reading reading(shape, static_cast<double>(tick) * GRANULE_MS + 1);
        const int64_t expected = ((tick + shift) % modulus + modulus) % modulus;
        CHECK(reading.tick == expected, "tick %lld by shift %u is %u", static_cast<long long>(tick), shift,
              reading.tick);
        CHECK(reading.absoluteTick == static_cast<double>(tick), "the absolute tick has no shift");
      }
    }
  }
}

/** The memory of one call of `SingleBy`, at START_MS. */
class OneCall {
 public:
  Word run(Single& single, Word operation, Name name, Word cost, size_t way, Word adm = 0, Word tick = 0) {
    call_.put(CALL_OPERATION, operation);
    call_.put(CALL_LO, name.lo);
    call_.put(CALL_HI, name.hi);
    call_.put(CALL_COST, cost);
    call_.put(CALL_LIMIT, LIMIT);
    call_.put(CALL_WAY, static_cast<Word>(way));
    call_.put(CALL_ADM, adm);
    call_.put(CALL_TICK, tick);
    call_.put(CALL_NOW_MS, START_MS);
    call_.put(CALL_MS, operation == OPERATION_USAGE ? WINDOW_MS : START_MS);
    single.run(call_);
    return call_.word(CALL_STATUS);
  }
  double answer() const { return call_.number(CALL_ANSWER); }

 private:
  std::array<double, CALL_WORDS / 2> memory_{};
  Call call_{reinterpret_cast<Word*>(memory_.data())};
};

/** A batch of one key, several times, and its results. */
struct SmallBatch {
  std::vector<Word> fingerprints;
  std::vector<uint8_t> allowed;
  std::vector<double> at;
  std::vector<Word> seen;
  Batch batch{};

  SmallBatch(Name name, size_t keys, double cost)
      : allowed(keys), at(keys), seen(keys * SEEN_WORDS) {
    for (size_t i = 0; i < keys; i++) fingerprints.insert(fingerprints.end(), {name.lo, name.hi});
    batch.fingerprints = fingerprints.data();
    batch.cost = cost;
    batch.limit = LIMIT;
    batch.to = keys;
    batch.allowed = allowed.data();
    batch.at = at.data();
    batch.seen = seen.data();
  }
};

/** A ring with requests of one key. */
std::vector<Word> ringOf(Name name, Word requests, size_t moreWords = 0) {
  std::vector<Word> ring(SLOTS_AT + size_t{SLOTS} * SLOT_WORDS + moreWords);
  for (Word i = 0; i < requests; i++) {
    const size_t request = REQUESTS_AT + (size_t{i} << REQUEST_BITS);
    ring[request + REQUEST_OP] = OP_CHECK;
    ring[request + REQUEST_LO] = name.lo;
    ring[request + REQUEST_HI] = name.hi;
    ring[request + REQUEST_COST] = 1;
  }
  return ring;
}

/** Calls every function that decides or counts. Each leaves the key to TypeScript and changes nothing. */
template <typename Sums>
void checkThatAllLeave(Arena<Sums>& arena, Name name, size_t way, const std::string& what) {
  const std::vector<Word> before = arena.words;
  const size_t base = arena.shape.waysAt + way * arena.shape.wayWords;
  const Reading reading(arena.shape, START_MS);

  SingleBy<SlidingWindow<Sums>> single(arena.words.data(), arena.shape);
  OneCall call;
  for (const Word operation : {OPERATION_CHECK, OPERATION_CHECK_WITHIN, OPERATION_USAGE}) {
    for (const Word cost : {1u, LIMIT + 1}) {
      const Word status = call.run(single, operation, name, cost, way);
      CHECK(status == STATUS_UNANSWERED, "%s: operation %u", what.c_str(), operation);
    }
  }
  for (const double cost : {0.0, 1.0, LIMIT + 1.0}) {
    SmallBatch small(name, 3, cost);
    const auto result = BatchDecider<SlidingWindow<Sums>>(arena.words.data(), arena.shape).run(small.batch, START_MS);
    CHECK(result.stopped == 0 && result.admitted == 0, "%s: cost %f", what.c_str(), cost);
  }
  std::vector<Word> ring = ringOf(name, 3);
  const Word stopped = RequestServer<SlidingWindow<Sums>>(arena.words.data(), arena.shape, ring.data()).run(0, 3, reading);
  CHECK(stopped == 0, "%s: %u requests served", what.c_str(), stopped);

  if (recordIn(before[HEADER_CURRENT]) == arena.shape.record) {
    const auto [adm, tick] = std::pair{before[base + ADM], before[base + TICK]};
    const Word retry = call.run(single, OPERATION_RETRY_AFTER, name, 1, way, adm, tick);
    CHECK(retry == STATUS_UNANSWERED, "%s: retry after", what.c_str());
    Decider<SlidingWindow<Sums>> decider(arena.words.data(), arena.shape);
    auto hint = static_cast<int64_t>(way);
    CHECK(decider.decide(hint, name, 1, LIMIT, reading) == Result::GONE, "%s: decide", what.c_str());
    Cells<Sums>& cells = decider.cells();
    CHECK(cells.attempt(way, name, 1, LIMIT, reading) == Result::UNDECIDED, "%s: attempt", what.c_str());
    CHECK(cells.decide(way, name, 1, LIMIT, reading) == Result::GONE, "%s: decide", what.c_str());
    CHECK(decider.table().findLive(name) == NO_WAY, "%s: find", what.c_str());
  }
  CHECK(arena.words == before, "%s: the memory has changed", what.c_str());
}

template <typename Sums>
void aCellOfAnotherRecordIsLeftAsItIs() {
  for (const Word low : {0u, RECORD - 1, LATER, CELL_RECORD, CONVERTING | RECORD, CONVERTING | LATER}) {
    for (const Word total : {0u, 2u, LIMIT, BLOCKED}) {
      Arena<Sums> arena(shapeBy<Sums>(RECORD, 12'345));
      arena.words[HEADER_CURRENT] = currentOf(RECORD, LIMIT);
      const size_t way = arena.insert(KEY, START_MS);
      const size_t base = arena.shape.waysAt + way * arena.shape.wayWords;
      arena.words[base + ADM] |= total;
      arena.words[base + UNTIL] = FOR_EVER;
      arena.words[base + HI] = KEY.hi | low;
      const std::string what = "HI " + std::to_string(low) + ", total " + std::to_string(total);
      checkThatAllLeave(arena, KEY, way, what);
      // Bits that are not of the hash don't change which cells are the key's.
      checkThatAllLeave(arena, {KEY.lo, KEY.hi | low}, way, what + ", in the fingerprint, too");
      arena.words[base + HI] = KEY.hi | RECORD;
      arena.words[HEADER_CURRENT] = currentOf(LATER, LIMIT);
      checkThatAllLeave(arena, KEY, way, what + ", another record holds");
    }
  }
}

/**
 * A thread that has not noticed a change reads a cell of the later record. Its tick seems to be from before
 * the ticks wrapped, and a thread would move a cell of its own record on to the reading.
 */
template <typename Sums>
void theTickOfALaterRecordStays() {
  for (const Word low : {RECORD, LATER, CONVERTING | LATER}) {
    Arena<Sums> arena(shapeBy<Sums>(RECORD, 0));
    const size_t way = arena.insert(KEY, START_MS);
    Cells<Sums> cells(arena.words.data(), arena.shape);
    const size_t base = cells.base(way);
    const Reading reading(arena.shape, START_MS);
    const Word tick = reading.tick + 1'000'000;
    arena.words[base + TICK] = tick;
    arena.words[base + HI] = KEY.hi | low;
    const bool isOwn = low == RECORD;
    CHECK(cells.enter(base, reading), "%u: no newer reading is needed", low);
    const Word left = arena.words[base + TICK];
    CHECK(left == (isOwn ? reading.tick : tick), "%u: tick %u", low, left);
    CHECK((arena.words[base + ADM] == LIVE) == !isOwn, "%u: the epoch", low);
  }
}

/**
 * The batch writes what it saw of its third key to an array that overlaps CURRENT, so CURRENT becomes the
 * tick of that key. This changes CURRENT between two keys without a second thread.
 */
void aBatchStopsAsSoonAsAnotherRecordHolds() {
  constexpr Word limit = 2;
  const Word same = currentOf(RECORD, limit);
  for (const Word present : {same, same + 1, currentOf(LATER, limit)}) {
    const Word shift = present - Reading(shapeBy<Linear>(0, 0), START_MS).tick;
    Arena<Linear> arena(shapeBy<Linear>(RECORD, shift));
    arena.words[HEADER_CURRENT] = same;
    arena.insert(KEY, START_MS);
    SmallBatch small(KEY, 6, 1);
    small.batch.limit = limit;
    small.batch.seen = arena.words.data() + HEADER_CURRENT - 2 - 2 * SEEN_WORDS;
    const auto result = BatchDecider<SlidingWindow<Linear>>(arena.words.data(), arena.shape).run(small.batch, START_MS);
    CHECK(arena.words[HEADER_CURRENT] == present, "CURRENT has become %x", arena.words[HEADER_CURRENT]);
    CHECK(result.admitted == limit, "%u admitted", result.admitted);
    CHECK(result.stopped == (present == same ? 6 : 3), "stopped at %zu", result.stopped);
  }
}

/** The arena begins in the ring, so that the reply to the third request writes its tick to CURRENT. */
void theServerStopsAsSoonAsAnotherRecordHolds() {
  for (const Word present : {currentOf(LATER, LIMIT), currentOf(RECORD, LIMIT)}) {
    const Word shift = present - Reading(shapeBy<Linear>(0, 0), START_MS).tick;
    const Shape shape = shapeBy<Linear>(RECORD, shift);
    constexpr size_t arenaAt = SLOTS_AT + 2 * SLOT_WORDS + SLOT_CHARGED_TICK - HEADER_CURRENT;
    std::vector<Word> ring = ringOf(KEY, 5, shape.words);
    Arena<Linear> arena(shape);
    arena.words[HEADER_CURRENT] = currentOf(RECORD, LIMIT);
    arena.insert(KEY, START_MS);
    std::copy(arena.words.begin(), arena.words.end(), ring.begin() + arenaAt);
    Word* const words = ring.data() + arenaAt;
    const Reading reading(shape, START_MS);
    const Word stopped = RequestServer<SlidingWindow<Linear>>(words, shape, ring.data()).run(0, 5, reading);
    CHECK(words[HEADER_CURRENT] == present, "CURRENT has become %x", words[HEADER_CURRENT]);
    CHECK(stopped == (present == currentOf(RECORD, LIMIT) ? 5 : 3), "stopped at %u", stopped);
  }
}

/** By a later record, TypeScript has to look for a cell of an earlier one. */
void aKeyIsAbsentOnlyWhileTheFirstRecordHolds() {
  for (const Word record : {0u, RECORD}) {
    Arena<Linear> arena(shapeBy<Linear>(record, 0));
    Word& current = arena.words[HEADER_CURRENT];
    current = currentOf(record, LIMIT);
    Decider<SlidingWindow<Linear>> decider(arena.words.data(), arena.shape);
    const bool isFirst = record == 0;
    CHECK(decider.isAbsent(current) == isFirst, "record %u", record);
    SingleBy<SlidingWindow<Linear>> single(arena.words.data(), arena.shape);
    OneCall call;
    const Word status = call.run(single, OPERATION_USAGE, KEY, 1, 0);
    CHECK(status == (isFirst ? STATUS_DONE : STATUS_UNANSWERED), "usage by record %u: %u", record, status);
    CHECK(call.answer() == 0, "nothing is used");
    SmallBatch small(KEY, 2, 0);
    const auto result = BatchDecider<SlidingWindow<Linear>>(arena.words.data(), arena.shape).run(small.batch, START_MS);
    CHECK(result.stopped == (isFirst ? 2 : 0), "cost 0 by record %u: %zu", record, result.stopped);
    const Word before = current;
    current = currentOf(record + 1, LIMIT);
    CHECK(!decider.isAbsent(before), "record %u, and another one since", record);
  }
}

/** Calls `beforeSum` before each sum. */
template <typename Sums>
struct Watched : Sums {
  using Sums::Sums;
  static inline std::function<void()> beforeSum;

  uint64_t sum(size_t base, uint32_t slot, Word lap, uint32_t length) {
    beforeSum();
    return Sums::sum(base, slot, lap, length);
  }
};

/** While a thread sums the units of a key, another one converts the key's cell. */
void usageIsLeftIfTheCellIsConvertedMeanwhile() {
  for (const Word low : {RECORD, CONVERTING | LATER, LATER}) {
    Arena<Linear> arena(shapeBy<Linear>(RECORD, 0));
    arena.words[HEADER_CURRENT] = currentOf(RECORD, LIMIT);
    const size_t way = arena.insert(KEY, START_MS);
    const size_t base = arena.shape.waysAt + way * arena.shape.wayWords;
    SingleBy<SlidingWindow<Watched<Linear>>> single(arena.words.data(), arena.shape);
    Watched<Linear>::beforeSum = [&] { arena.words[base + HI] = KEY.hi | low; };
    OneCall call;
    const Word status = call.run(single, OPERATION_USAGE, KEY, 1, way);
    CHECK(status == (low == RECORD ? STATUS_DONE : STATUS_UNANSWERED), "HI %u: %u", low, status);
  }
}

}  // namespace
