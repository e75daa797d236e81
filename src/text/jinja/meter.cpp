#include "text/jinja/meter.h"

#include <ctime>

#include "text/jinja/value.h"

namespace snug::text::jinja {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;
// Looking at the clock takes as long as some ten steps.
constexpr int64_t kStepsBetweenLooks = 50'000;

thread_local Meter* running = nullptr;

// Of this thread, so that a busy machine does not refuse what an idle one runs.
int64_t processor_time_ns() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * kNanoseconds + now.tv_nsec;
}

[[noreturn]] void fail_by_time() {
  fail("the template runs too long; does it loop over too much?");
}

}  // namespace

Meter::Meter() : outer_(running), end_ns_(processor_time_ns() + kMaxSeconds * kNanoseconds) {
  running = this;
}

Meter::~Meter() { running = outer_; }

void Meter::charge_steps(int64_t steps) {
  if (steps > steps_) fail_by_time();
  steps_ -= steps;
  if (steps_ <= next_look_) look_at_clock();
}

void Meter::charge_bytes(int64_t bytes) {
  if (bytes > bytes_) fail_by_bytes();
  bytes_ -= bytes;
}

void Meter::look_at_clock() {
  next_look_ = steps_ - kStepsBetweenLooks;
  if (processor_time_ns() > end_ns_) fail_by_time();
}

void fail_by_bytes() { fail("the template makes too much text, or too many values"); }

void charge_steps(int64_t steps) {
  if (running != nullptr) running->charge_steps(steps);
}

void charge_bytes(int64_t bytes) {
  if (running != nullptr) running->charge_bytes(bytes);
}

}  // namespace snug::text::jinja
