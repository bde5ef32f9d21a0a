// The protocol in C++ alone: on plain memory, without Node, by real threads. `npm run test:native` builds and runs it.
// What TypeScript and this must do alike is held by test/native/; here it is what they promise.
#include <array>
#include <functional>
#include <latch>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "answers.h"

namespace {

template <typename Sums>
void admitsTheLimitInAnyWindowAndAllOfItAfterwards(uint32_t granules) {
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Sums> cells(arena.data(), arena.shape);
  // One unit a granule, round many laps: never more than the limit in a window and a granule, and never idle for long.
  const Word limit = granules / 2;
  std::vector<int> admitted;
  int sum = 0;
  for (uint32_t tick = 0; tick < std::max(5'000u, 20 * granules); tick++) {
    const Reading reading(arena.shape, START_MS + tick * GRANULE_MS);
    admitted.push_back(admits(cells, way, 1, limit, reading) ? 1 : 0);
    sum += admitted[tick] - (tick > granules ? admitted[tick - granules - 1] : 0);
    CHECK(sum <= static_cast<int>(limit), "%d in the window that ends in granule %u", sum, tick);
    if (tick > 2 * granules) CHECK(sum == static_cast<int>(limit), "only %d in the window that ends in %u", sum, tick);
  }
}

template <typename Sums>
void aReturnAfterAnyNumberOfLapsFindsTheWholeLimit(uint32_t granules) {
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Sums> cells(arena.data(), arena.shape);
  double nowMs = START_MS;
  for (int laps : {1, 2, 63, 64, 65, 255, 256, 257, 512, 1000, 1'000'000}) {
    const Reading reading(arena.shape, nowMs);
    CHECK(admits(cells, way, 7, 7, reading), "before %d laps", laps);
    CHECK(!admits(cells, way, 1, 7, reading), "full before %d laps", laps);
    nowMs += laps * (arena.shape.ring * GRANULE_MS);
  }
}

void aTickFarAheadAsksForANewReading() {
  Arena<Plain> arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Plain> cells(arena.data(), arena.shape);
  CHECK(cells.enter(cells.base(way), Reading(arena.shape, START_MS + 7'200'000)), "two hours on");
  const Word before = arena.words[cells.base(way) + TICK];
  CHECK(!cells.enter(cells.base(way), Reading(arena.shape, START_MS)), "two hours back is not believed");
  CHECK(arena.words[cells.base(way) + TICK] == before, "the tick stays");
}

/** The time in a note comes round after 2^23 granules; what would have to be the same epoch is, as nothing else happens here. */
void aNoteEndsLongBeforeItsTimeComesRound() {
  Arena<Plain> arena(2);
  const size_t way = arena.insert(KEY, START_MS);
  Cells<Plain> cells(arena.data(), arena.shape);
  const size_t base = cells.base(way);
  const auto at = [&](double granules) { return Reading(arena.shape, START_MS + granules * GRANULE_MS); };
  CHECK(admits(cells, way, 5, 5, at(0)), "the limit");
  CHECK(!admits(cells, way, 1, 5, at(0)), "full");
  CHECK(arena.words[base + AS_OF] != NO_NOTE, "noted");
  cells.enter(base, at(1));
  CHECK(arena.words[base + AS_OF] != NO_NOTE, "a note of an old tick ends by its time");
  cells.enter(base, at(1 << 18));
  CHECK(arena.words[base + AS_OF] == NO_NOTE, "ended");
}

template <typename Sums>
void aBatchDecidesInOrderAndStopsAtANewKey() {
  Arena<Sums> arena(100);
  std::vector<Word> fingerprints;
  for (Word i = 0; i < 500; i++) {
    const uint64_t key = i / 2;  // each twice, and no two in one home
    const Word set = static_cast<Word>(((key % 100 << 32) + 99) / 100);
    const Name name{((set + 16) & ~15u) | static_cast<Word>(key / 100), i / 2};
    if (i % 2 == 0 && i != 400) arena.insert(name, START_MS);
    fingerprints.insert(fingerprints.end(), {name.lo, name.hi});
  }
  std::vector<uint8_t> allowed(500, 9);
  std::vector<double> at(500);
  std::vector<Word> seen(500 * SEEN_WORDS);
  Batch batch{};
  batch.fingerprints = fingerprints.data();
  batch.cost = 2;
  batch.limit = 3;
  batch.to = 500;
  batch.allowed = allowed.data();
  batch.at = at.data();
  batch.seen = seen.data();
  const Tally none = Batches<Sums>(arena.data(), arena.shape).admit(batch, START_MS);
  CHECK(none.stopped == 0 && none.admitted == 0 && !none.isBadCost, "the arena has another limit: stopped at %zu", none.stopped);
  arena.data()[HEADER_LIMIT] = batch.limit;
  const Tally tally = Batches<Sums>(arena.data(), arena.shape).admit(batch, START_MS);
  CHECK(tally.stopped == 400, "stopped at %zu", tally.stopped);
  CHECK(tally.admitted == 200, "%u admitted", tally.admitted);
  for (size_t i = 0; i < 400; i++) {
    CHECK(allowed[i] == (i % 2 == 0 ? 1 : 0) && at[i] == START_MS, "entry %zu: %d", i, allowed[i]);
  }
  CHECK(allowed[400] == 9, "what was not decided is left as it was");
}

constexpr unsigned THREADS = 4;

/** Ends when all have. */
void inThreads(const std::function<void(unsigned)>& work) {
  std::latch begin(THREADS);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < THREADS; i++) {
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      work(i);
    });
  }
  for (auto& thread : threads) thread.join();
}

/**
 * What threads turn on while they decide. Laps and epochs have eight bits, so a thread that is held up for 256 of them in
 * mid-decision may find a word that looks as if nothing had happened. While a system keeps a thread from running, the others
 * would make thousands: this clock waits for the slowest.
 */
class Clock {
 public:
  int now() const { return now_; }

  /** Now, from which on thread i counts as there. */
  int enter(unsigned i) { return entered_[i] = now_.load(); }

  /** On by one, once for all that saw it stand at `now`. */
  void turn(int now) {
    for (const auto& entered : entered_) {
      if (now - entered >= MOST_AHEAD) return std::this_thread::yield();
    }
    now_.compare_exchange_strong(now, now + 1);
  }

  /** Thread i is not waited for any more. */
  void leave(unsigned i) { entered_[i] = std::numeric_limits<int>::max(); }

 private:
  static constexpr int MOST_AHEAD = 40;

  std::atomic<int> now_{0};
  std::array<std::atomic<int>, THREADS> entered_{};
};

/**
 * All threads on one cell; who is refused turns the clock on by a window and a granule, once for all. What was admitted
 * while the clock stood, seen before and after, was charged in that very tick.
 */
template <typename Sums>
void threadsNeverAdmitMoreThanTheLimit(bool isSmooth, uint32_t granules, Word cost) {
  constexpr Word limit = 20;
  constexpr int PHASES = 50'000;
  Arena<Sums> arena(2, isSmooth, granules);
  const size_t way = arena.insert(KEY, START_MS);
  const double turnMs = (granules + 1) * GRANULE_MS;
  Clock clock;
  std::vector<std::atomic<Word>> admitted(PHASES);
  inThreads([&](unsigned i) {
    Cells<Sums> cells(arena.data(), arena.shape);
    for (int now = clock.enter(i); now < PHASES; now = clock.enter(i)) {
      const Found found = decide(cells, way, cost, limit, Reading(arena.shape, START_MS + now * turnMs));
      if (found == Found::ADMITTED && clock.now() == now) admitted[now] += cost;
      if (found == Found::FULL) clock.turn(now);
      // NEEDS_READING: this thread was kept from running while the others went on by an hour.
    }
    clock.leave(i);
  });
  int full = 0;
  for (int i = 0; i < PHASES; i++) {
    CHECK(admitted[i] <= limit, "%u in window %d", admitted[i].load(), i);
    full += admitted[i] == limit / cost * cost;
  }
  CHECK(full > PHASES / (IS_HELD_UP ? 20 : 2), "only %d of %d windows were used up", full, PHASES);
}

/**
 * As above, but the clock goes on by a part of a window, also while there is room, so that windows end all over the ring
 * and count what was admitted at many moments.
 */
template <typename Sums>
void threadsNeverAdmitMoreThanTheLimitInMovingWindows(uint32_t granules) {
  constexpr Word limit = 10;
  constexpr int PHASES = 20'000;
  const uint32_t turn = (granules + 6) / 7;
  const int phasesAWindow = static_cast<int>((granules + turn - 1) / turn);
  Arena<Sums> arena(2, false, granules);
  const size_t way = arena.insert(KEY, START_MS);
  const double turnMs = turn * GRANULE_MS;
  Clock clock;
  std::vector<std::atomic<Word>> admitted(PHASES);
  inThreads([&](unsigned i) {
    Cells<Sums> cells(arena.data(), arena.shape);
    for (int now = clock.enter(i); now < PHASES; now = clock.enter(i)) {
      const Found found = decide(cells, way, 1, limit, Reading(arena.shape, START_MS + now * turnMs));
      if (found == Found::ADMITTED && clock.now() == now) admitted[now]++;
      if (found == Found::FULL || admitted[now] > limit / 4) clock.turn(now);
    }
    clock.leave(i);
  });
  int full = 0;
  for (int end = phasesAWindow; end < PHASES; end++) {
    Word sum = 0;
    for (int i = end - phasesAWindow + 1; i <= end; i++) sum += admitted[i];
    CHECK(sum <= limit, "%u in the window that ends at turn %d", sum, end);
    full += sum == limit;
  }
  CHECK(full > (IS_HELD_UP ? 0 : PHASES / 50), "only %d of %d windows were full", full, PHASES);
}

template <typename Sums>
void theLastCellOfAnArenaIsDecidedWithinIt() {
  Arena<Sums> arena(2);
  constexpr Name last{0xffffffff, 0xffffffff};
  const size_t way = arena.insert(last, START_MS);
  Cells<Sums> cells(arena.data(), arena.shape);
  CHECK(cells.base(way) + arena.shape.wayWords == arena.shape.besideAt, "way %zu is the last", way);
  for (uint32_t tick = 0; tick < 3 * (GRANULES + 1); tick++) {
    const Reading reading(arena.shape, START_MS + tick * GRANULE_MS);
    const bool isFirst = tick % (GRANULES + 1) == 0;
    CHECK(admits(cells, way, 5, 5, reading, last) == isFirst, "in granule %u", tick);
  }
}

/**
 * A clock that any thread turns on by a granule at any moment, round a ring of four buckets: decisions meet rollovers, undo what
 * they charged in a granule that ended, and sum anew all the time. What was admitted was charged between the granule of before
 * and that of after: it counts in every window in which all of that lies.
 */
template <typename Sums>
void threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns(bool isSmooth) {
  constexpr uint32_t granules = 3;
  constexpr Word limit = 12;
  constexpr int TICKS = 300'000;
  constexpr unsigned DECISIONS_A_TURN = 8;
  constexpr unsigned READINGS_KEPT = 61;
  Arena<Sums> arena(2, isSmooth, granules);
  const size_t way = arena.insert(KEY, START_MS);
  Clock clock;
  std::vector<std::array<std::atomic<Word>, granules + 1>> admitted(TICKS);
  std::atomic<Word> late{0};
  inThreads([&](unsigned i) {
    Cells<Sums> cells(arena.data(), arena.shape);
    unsigned decisions = i;
    for (int from = clock.enter(i); from < TICKS; from = clock.enter(i)) {
      const Word cost = 1 + decisions % 3;
      const Reading reading(arena.shape, START_MS + from * GRANULE_MS);
      if (decisions % READINGS_KEPT == 0) clock.turn(from);  // late when it is used
      const Found found = decide(cells, way, cost, limit, reading);
      const int to = clock.now();
      if (found == Found::ADMITTED && to - from <= static_cast<int>(granules)) {
        admitted[from][to - from] += cost;
        if (to > from) late++;
      }
      if (++decisions % DECISIONS_A_TURN == 0) clock.turn(to);
    }
    clock.leave(i);
  });
  // A smooth window's oldest granule counts in part: there the whole ones are looked at.
  const int window = isSmooth ? granules : granules + 1;
  uint64_t all = 0;
  for (int first = 0; first + window <= TICKS; first++) {
    Word inside = 0;
    for (int from = first; from < first + window; from++) {
      for (int to = from; to < first + window; to++) inside += admitted[from][to - from];
    }
    CHECK(inside <= limit, "%u in the window of granules %d to %d", inside, first, first + window - 1);
    for (const auto& units : admitted[first]) all += units;
  }
  CHECK(all > uint64_t{TICKS} * limit / window / (IS_HELD_UP ? 20 : 2), "only %llu units", static_cast<unsigned long long>(all));
  CHECK(late > 0, "no reading was late");
}

void aShapeHasTheWordsThatTypeScriptSays() {
  struct Expected {
    Word sums;
    uint32_t buckets, ring, blocks, upper;
  };
  for (const auto& [sums, buckets, ring, blocks, upper] : {
           Expected{SUMS_LINEAR, 60, 61, 0, 0},
           Expected{SUMS_BLOCKS, 1, 128, 2, 0},
           Expected{SUMS_BLOCKS, 63, 128, 2, 0},
           Expected{SUMS_BLOCKS, 64, 192, 3, 0},
           Expected{SUMS_BLOCKS, 4'096, 4'224, 66, 0},
           Expected{SUMS_BLOCKS, 4'097, 12'288, 192, 3},
           Expected{SUMS_FENWICK, 4'097, 4'224, 66, 0},
           Expected{SUMS_BLOCKS, 1 << 20, 1'056'768, 16'512, 258},
           Expected{SUMS_FENWICK, 1 << 20, 1'048'704, 16'386, 0},
       }) {
    const Shape shape(1000.0 * buckets, buckets, 2, 0, false, sums);
    CHECK(shape.ring == ring && shape.blocks == blocks && shape.upper == upper, "%u buckets by %u: %u, %u, %u", buckets,
          sums, shape.ring, shape.blocks, shape.upper);
    CHECK(shape.modulus % (int64_t{LAPS} * ring) == 0, "%u buckets by %u: laps end at the modulus", buckets, sums);
  }
}

using Tests = std::vector<std::pair<std::string, std::function<void()>>>;

template <typename Sums>
void addThoseWithNodes(Tests& tests, const std::string& name) {
  const auto add = [&](const std::string& what, std::function<void()> run) { tests.emplace_back(name + what, run); };
  for (const uint32_t granules : {GRANULES, 300u, MANY_GRANULES}) {
    const std::string many = " of " + std::to_string(granules);
    add(many + ": the limit in any window, and all of it afterwards",
        [=] { admitsTheLimitInAnyWindowAndAllOfItAfterwards<Sums>(granules); });
    add(many + ": a return after any number of laps finds the whole limit",
        [=] { aReturnAfterAnyNumberOfLapsFindsTheWholeLimit<Sums>(granules); });
    add(many + ": nodes count what their buckets do", [=] { nodesCountWhatTheirBucketsDo<Sums>(granules); });
    add(many + ": threads, never over",
        [=] { threadsNeverAdmitMoreThanTheLimit<Sums>(false, granules, 3); });
    add(many + ": threads, never over in a window that moves",
        [=] { threadsNeverAdmitMoreThanTheLimitInMovingWindows<Sums>(granules); });
  }
  add(": what a node counts beyond its buckets is waited for", whatANodeCountsBeyondItsBucketsIsWaitedFor<Sums>);
  add(": a charge that is not committed leaves every node", aChargeThatIsNotCommittedLeavesEveryNode<Sums>);
  for (const uint32_t laps : {1, 2, 100}) {
    add(": a charge that " + std::to_string(laps) + " laps overtake takes no node back",
        [=] { aLateChargeTakesNoNodeBack<Sums>(laps); });
  }
  add(": threads, a clock that turns: never over",
      [] { threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns<Sums>(false); });
  add(": threads, a clock that turns, smooth: never over",
      [] { threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns<Sums>(true); });
  add(": the last cell of an arena is decided within it", theLastCellOfAnArenaIsDecidedWithinIt<Sums>);
  add(": a batch decides in order, and stops at a new key", aBatchDecidesInOrderAndStopsAtANewKey<Sums>);
}

}  // namespace

int main() {
  Tests tests{
      {"a shape has the words that TypeScript says", aShapeHasTheWordsThatTypeScriptSays},
      {"admits the limit in any window, and all of it afterwards",
       [] { admitsTheLimitInAnyWindowAndAllOfItAfterwards<Plain>(GRANULES); }},
      {"a return after any number of laps finds the whole limit",
       [] { aReturnAfterAnyNumberOfLapsFindsTheWholeLimit<Plain>(GRANULES); }},
      {"a tick far ahead asks for a new reading", aTickFarAheadAsksForANewReading},
      {"a refusal is answered while its cell is unchanged", aRefusalIsAnsweredWhileItsCellIsUnchanged},
      {"a charge is taken out unless a refund by key has been there", aChargeIsTakenOutUnlessARefundByKeyHasBeenThere},
      {"a note ends long before its time comes round", aNoteEndsLongBeforeItsTimeComesRound},
      {"a batch decides in order, and stops at a new key", aBatchDecidesInOrderAndStopsAtANewKey<Plain>},
      {"threads, cost 1: never over", [] { threadsNeverAdmitMoreThanTheLimit<Plain>(false, GRANULES, 1); }},
      {"threads, cost 3: never over", [] { threadsNeverAdmitMoreThanTheLimit<Plain>(false, GRANULES, 3); }},
      {"threads, a window of one granule: never over", [] { threadsNeverAdmitMoreThanTheLimit<Plain>(false, 1, 1); }},
      {"threads, smooth: never over", [] { threadsNeverAdmitMoreThanTheLimit<Plain>(true, GRANULES, 1); }},
      {"threads, never over in a window that moves",
       [] { threadsNeverAdmitMoreThanTheLimitInMovingWindows<Plain>(GRANULES); }},
      {"the last cell of an arena is decided within it", theLastCellOfAnArenaIsDecidedWithinIt<Plain>},
      {"threads, a clock that turns: never over", [] { threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns<Plain>(false); }},
      {"threads, a clock that turns, smooth: never over",
       [] { threadsNeverAdmitMoreInAnyWindowOfAClockThatTurns<Plain>(true); }},
  };
  tests.emplace_back("a Fenwick tree: a sum that a lap overtakes does not count", aSumThatALapOvertakesDoesNotCount);
  addThoseWithNodes<Blocks>(tests, "block sums");
  addThoseWithNodes<Fenwick>(tests, "a Fenwick tree");
  int broken = 0;
  for (const auto& [name, run] : tests) {
    const int before = failed;
    run();
    if (failed > before) broken++;
    std::printf("%s %s\n", failed > before ? "FAIL" : "ok  ", name.c_str());
    std::fflush(stdout);
  }
  std::printf("%zu passed, %d failed\n", tests.size() - static_cast<size_t>(broken), broken);
  return broken > 0 ? 1 : 0;
}
