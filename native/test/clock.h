// Threads that start together, and the clock that they advance.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <limits>
#include <thread>
#include <vector>

namespace {

constexpr unsigned THREADS = 4;

/** Runs `work` in all threads at once and waits for them. */
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
 * A clock that the threads advance while they decide. Laps and epochs have eight bits, so a thread that is
 * suspended for 256 of them in the middle of a decision may not notice the change. The other threads would
 * make thousands meanwhile, so this clock waits for the slowest thread.
 */
class Clock {
 public:
  int now() const { return now_; }

  /** The time. Thread i counts as having reached it. */
  int enter(unsigned i) { return entered_[i] = now_.load(); }

  /** Advances by one from `now`, once for all threads that saw this time. */
  void advance(int now) {
    for (const auto& entered : entered_) {
      if (now - entered >= MOST_AHEAD) return std::this_thread::yield();
    }
    now_.compare_exchange_strong(now, now + 1);
  }

  /**
   * Waits for all threads at `now`. The last one calls `decideAlone` and then advances the clock. So every
   * decision at this time has ended before the next time begins.
   */
  template <typename Alone>
  void advanceCalmly(int now, const Alone& decideAlone) {
    if (now_ != now) return;  // this thread decided at an older time
    if (++waiting_ < THREADS) {
      return now_.wait(now);
    }
    decideAlone();
    waiting_ = 0;
    now_ = now + 1;
    now_.notify_all();
  }

  /** Whether the advance at the end of this time is calm. */
  static bool isCalm(int now) { return now % CALM_EVERY >= CALM_EVERY - CALM_ADVANCES; }

  /** Whether this time and the `before` times before it lie between calm advances. */
  static bool isRecorded(int now, int before) {
    return now % CALM_EVERY > CALM_EVERY - CALM_ADVANCES + before;
  }

  /** The clock no longer waits for thread i. */
  void leave(unsigned i) { entered_[i] = std::numeric_limits<int>::max(); }

 private:
  static constexpr int MOST_AHEAD = 40;
  static constexpr int CALM_EVERY = 500;
  static constexpr int CALM_ADVANCES = 12;

  std::atomic<int> now_{0};
  std::array<std::atomic<int>, THREADS> entered_{};
  std::atomic<unsigned> waiting_{0};
};

}  // namespace
