#include "text/chat/jinja/meter.h"

#include <algorithm>
#include <ctime>

#include "text/chat/jinja/allowance.h"
#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {
namespace {

constexpr int64_t kNanosecondsOfSecond = 1'000'000'000;
// Reading the clock takes as long as about ten steps.
constexpr int64_t kStepsBetweenLooks = 50'000;

thread_local Meter* running = nullptr;

// The rest of this thread's allowance.
struct Left {
  int64_t steps = Allowance::kSteps;
  int64_t bytes = Allowance::kBytes;
  int64_t nanoseconds = Allowance::kNanoseconds;
  bool is_there = false;
  bool is_spent = false;
};
thread_local Left left;

// The limits of a rendering that begins now.
int64_t steps_at_most() { return left.is_there ? std::min(kMaxSteps, left.steps) : kMaxSteps; }
int64_t bytes_at_most() { return left.is_there ? std::min(kMaxBytes, left.bytes) : kMaxBytes; }
constexpr int64_t kMaxNanoseconds = kMaxSeconds * kNanosecondsOfSecond;
int64_t nanoseconds_at_most() {
  return left.is_there ? std::min(kMaxNanoseconds, left.nanoseconds) : kMaxNanoseconds;
}

// Of this thread only, so that a template is not refused because the machine is busy.
int64_t processor_time_ns() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * kNanosecondsOfSecond + now.tv_nsec;
}

[[noreturn]] void fail_as_spent() {
  left.is_spent = true;
  fail(
      "all that the template writes of this record to tell what is learned takes too long; mark "
      "the answers in it with {% generation %}, or make the conversation shorter");
}

[[noreturn]] void fail_by_time(bool is_spent) {
  if (is_spent) fail_as_spent();
  fail("the template runs too long; does it loop over too much?");
}

}  // namespace

Allowance::Allowance(int64_t steps) : is_outer_(!left.is_there) {
  if (!is_outer_) return;
  left = {};
  left.steps = steps;
  left.is_there = true;
}

Allowance::~Allowance() {
  if (is_outer_) left = {};
}

bool Allowance::is_spent() { return left.is_spent; }

Meter::Meter()
    : outer_(running),
      steps_(steps_at_most()),
      bytes_(bytes_at_most()),
      next_look_(steps_),
      end_ns_(processor_time_ns() + nanoseconds_at_most()) {
  running = this;
}

Meter::~Meter() {
  running = outer_;
  if (!left.is_there) return;
  const int64_t begin = end_ns_ - nanoseconds_at_most();
  const int64_t steps = steps_at_most() - steps_;
  const int64_t bytes = bytes_at_most() - bytes_;
  left.nanoseconds -= processor_time_ns() - begin;
  left.steps -= steps;
  left.bytes -= bytes;
}

void Meter::charge_steps(int64_t steps) {
  if (steps > steps_) fail_by_time(steps_at_most() < kMaxSteps);
  steps_ -= steps;
  if (steps_ <= next_look_) look_at_clock();
}

void Meter::charge_bytes(int64_t bytes) {
  if (bytes > bytes_) {
    if (bytes_at_most() < kMaxBytes) fail_as_spent();
    fail_by_bytes();
  }
  bytes_ -= bytes;
}

void Meter::look_at_clock() {
  next_look_ = steps_ - kStepsBetweenLooks;
  if (processor_time_ns() > end_ns_) fail_by_time(nanoseconds_at_most() < kMaxNanoseconds);
}

void fail_by_bytes() { fail("the template makes too much text, or too many values"); }

void charge_steps(int64_t steps) {
  if (running != nullptr) running->charge_steps(steps);
}

void charge_bytes(int64_t bytes) {
  if (running != nullptr) running->charge_bytes(bytes);
}

}  // namespace snug::text::jinja
