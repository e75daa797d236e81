// What a user sees on standard error while prompts are answered: on a terminal a line that is
// renewed, elsewhere a line now and then.
#pragma once

#include <chrono>
#include <cstdint>

namespace snug::generate {

class AnswersProgress {
 public:
  // `done` of `total` were answered before this process began.
  AnswersProgress(int64_t done, int64_t total);

  void add_tokens(int64_t tokens) { tokens_ += tokens; }
  // Shows how far it is, unless that was shown just now.
  void show(int64_t done);
  // Ends the line and says what was done, of which `errors` have no answer.
  void finish(int64_t done, int64_t errors);

  double seconds() const;
  int64_t tokens() const { return tokens_; }

 private:
  using Clock = std::chrono::steady_clock;
  double rate() const;

  int64_t first_;
  int64_t total_;
  int64_t tokens_ = 0;
  bool terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace snug::generate
