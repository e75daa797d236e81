#include "generate/prompts_file/answers_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/console.h"
#include "base/seconds_since.h"

namespace snug::generate {

AnswersProgress::AnswersProgress(int64_t done, int64_t total)
    : first_(done), total_(total), terminal_(::isatty(STDERR_FILENO) != 0) {
  if (done > 0) base::say("{} of {} answers are there already; going on", done, total);
}

double AnswersProgress::seconds() const { return base::seconds_since(start_); }

double AnswersProgress::rate() const { return static_cast<double>(tokens_) / seconds(); }

void AnswersProgress::show(int64_t done) {
  constexpr double kTerminalSeconds = 0.2;
  constexpr double kLogSeconds = 10;
  if (base::seconds_since(shown_) < (terminal_ ? kTerminalSeconds : kLogSeconds)) return;
  shown_ = Clock::now();
  base::write_to_console(fmt::format("{}{} of {} answers, {:.1f} tokens/s{}",
                                     terminal_ ? "\r\x1b[2K" : "", done, total_, rate(),
                                     terminal_ ? "" : "\n"));
}

void AnswersProgress::finish(int64_t done, int64_t errors) {
  if (terminal_) base::write_to_console("\r\x1b[2K");
  if (done == first_) return;
  base::say("{} answers, {} new tokens in {:.1f} s, {:.1f} tokens/s", done - first_, tokens_,
            seconds(), rate());
  if (errors > 0)
    base::say("WARNING: {} of {} lines {} an error in place of an answer", errors, done - first_,
              errors == 1 ? "has" : "have");
}

}  // namespace snug::generate
