// Every call of the addon returns, whichever word of its memory never rests: each loop has a bound (`MOST_TRIES`).
#include "restless_words.h"

#include <array>
#include <vector>

#include "../algorithm.h"
#include "../single.h"

using namespace millrace;

namespace {

constexpr double START_MS = 1'000'123;
constexpr double GRANULE_MS = 1'000;
constexpr Name KEY{0x1234, 0x5600};
constexpr Word LIMIT = 5;
constexpr size_t WAY = 0x4;
/** A word begins to change before each of the first operations of a call, or of the next call. */
constexpr uint64_t MOST_RESTS = 48;

/** What a thread that never rests may do to a word. The last ones do and undo it. */
struct Change {
  Word more;
  bool isToAndFro;
};
constexpr std::array CHANGES{
    Change{ONE_EPOCH, false}, Change{static_cast<Word>(-1), false}, Change{static_cast<Word>(-2), false},
    Change{1, false},         Change{LIVE, true},           Change{1, true},
    Change{2, true},          Change{ONE_EPOCH, true},              Change{HASH & (~HASH + 1), true},
};

/** Calls of a limiter of LIMIT, of one key, in a new arena. */
template <typename Algorithm>
class Calls {
 public:
  /** A cell with this tick and this admission word, in which so many units are then used. */
  Calls(const Shape& shape, Word tick, Word adm, Word used = 0)
      : shape_(shape), words_(shape.words), single_(words_.data(), shape_) {
    words_[HEADER_CURRENT] = LIMIT;
    words_[NAMES_AT + WAY] = KEY.lo;
    words_[base() + HI] = KEY.hi;
    words_[base() + TICK] = tick;
    words_[base() + ADM] = adm;
    if (used > 0) check(used, START_MS);
  }

  const std::vector<Word>& words() const { return words_; }

  void check(Word cost, double nowMs) { run(OPERATION_CHECK, cost, nowMs); }

  void all(double nowMs) {
    for (const Word cost : {1u, LIMIT}) check(cost, nowMs);
    run(OPERATION_USAGE, 0, nowMs);
    const Reading reading(shape_, nowMs);
    typename Algorithm::Cells cells(words_.data(), shape_);
    typename Algorithm::Estimates estimates(words_.data(), shape_, cells);
    for (const bool isAdmitted : {true, false}) estimates.figures(WAY, isAdmitted, LIMIT, LIMIT, reading);
    estimates.usedInLast(base(), reading, GRANULE_MS);
    estimates.untilFits(base(), LIMIT, LIMIT, reading);
  }

 private:
  size_t base() const { return shape_.waysAt + WAY * shape_.wayWords; }

  void run(Word operation, Word cost, double nowMs) {
    call_.put(CALL_OPERATION, operation);
    call_.put(CALL_LO, KEY.lo);
    call_.put(CALL_HI, KEY.hi);
    call_.put(CALL_COST, cost);
    call_.put(CALL_WAY, static_cast<Word>(WAY));
    call_.put(CALL_DEMAND, Word{1});
    call_.put(CALL_NOW_MS, nowMs);
    call_.put(CALL_MS, GRANULE_MS);
    single_.run(call_);
  }

  const Shape shape_;
  std::vector<Word> words_;
  SingleBy<Algorithm> single_;
  std::array<double, CALL_WORDS / 2> memory_{};
  Call call_{reinterpret_cast<Word*>(memory_.data())};
};

/** Plays every change of each word that decisions change, and of the name. */
template <typename Algorithm>
void returns(const Shape& shape, Word tick, Word adm) {
  const std::vector<Word> before = Calls<Algorithm>(shape, tick, adm).words();
  Calls<Algorithm> changed(shape, tick, adm, LIMIT);
  changed.check(1, START_MS + GRANULE_MS);
  const size_t base = shape.waysAt + WAY * shape.wayWords;
  for (size_t at = 0; at < before.size(); at++) {
    const bool isHead = at == NAMES_AT + WAY || (at >= base && at < base + BUCKETS);
    if (!isHead && before[at] == changed.words()[at]) continue;
    for (const auto& [more, isToAndFro] : CHANGES) {
      // A new tick, the same one, a window later, and a clock that steps back; a cell with room and one without.
      for (const double granules : {0.0, 1.0, 30.0, 9'000.0, -2.0}) {
        for (uint64_t rests = 0; rests < MOST_RESTS; rests++) {
          for (const size_t alsoAdm : {SIZE_MAX, base + ADM}) {
            Calls<Algorithm> calls(shape, tick, adm, rests % 2 == 0 ? 0 : LIMIT);
            restless = {at, more, isToAndFro, rests / 2, alsoAdm, 0};
            calls.all(START_MS + granules * GRANULE_MS);
            restless = {};
          }
        }
      }
    }
  }
}

template <typename Sums>
void windowReturns(uint32_t granules, Word sums, bool isSmooth) {
  const Shape shape(granules * GRANULE_MS, granules, 2, START_MS, isSmooth, sums);
  returns<SlidingWindow<Sums>>(shape, Reading(shape, START_MS).tick, LIVE);
}

template <typename Meter>
void wordReturns(uint32_t granules, Word counting, uint32_t units) {
  const CellRule rule{counting, units, 0};
  const Shape shape(granules * GRANULE_MS, granules, 2, START_MS, false, SUMS_LINEAR, granules, 0, 0, rule);
  const Word tick = Reading(shape, START_MS).tick;
  returns<InOneWord<Meter>>(shape, settled(tick), LIVE | Meter(shape).emptyAt(tick));
}

void logReturns() {
  const CellRule rule{COUNTING_LOG, LIMIT, 0};
  const Shape shape(60 * GRANULE_MS, 60, 2, START_MS, false, SUMS_LINEAR, 60, 0, 0, rule);
  returns<SlidingLog>(shape, Reading(shape, START_MS).tick, LIVE);
}

}  // namespace

int main() {
  for (const bool isSmooth : {false, true}) windowReturns<Linear>(60, SUMS_LINEAR, isSmooth);
  windowReturns<Blocks>(300, SUMS_BLOCKS, false);
  windowReturns<Fenwick>(300, SUMS_FENWICK, false);
  wordReturns<FixedWindow>(1, COUNTING_FIXED_WINDOW, 0);
  wordReturns<FixedWindow>(4'096, COUNTING_FIXED_WINDOW, 0);
  wordReturns<TokenBucket>(4, COUNTING_TOKEN_BUCKET, 1 << 10);
  logReturns();
  std::printf("every call returns\n");
}
