// What is written to standard output or standard error, and what a process says that dies. It is
// taken into memory: GoogleTest's own captures and death tests write to /tmp, whatever TMPDIR says,
// and fail where that is full.
#pragma once

#include "temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

namespace snug::testing {

// Takes what is written to `stream` (stdout or stderr) for as long as it lives.
class CapturedStream {
 public:
  explicit CapturedStream(FILE* stream)
      : stream_(stream),
        before_(::dup(::fileno(stream))),
        taken_(::memfd_create("captured", MFD_CLOEXEC)) {
    std::fflush(stream_);
    if (before_ < 0 || taken_ < 0 || ::dup2(taken_, ::fileno(stream_)) < 0)
      base::throw_system_error("capture", "a standard stream", errno);
  }
  ~CapturedStream() {
    std::fflush(stream_);
    ::dup2(before_, ::fileno(stream_));
    ::close(before_);
    ::close(taken_);
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  // All of it so far.
  std::string text() const {
    std::fflush(stream_);
    std::string text(static_cast<size_t>(::lseek(taken_, 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(taken_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  FILE* stream_;
  int before_;
  int taken_;
};

// Whether `action` ends the process, a child of this one, with a message that contains `words`.
template <typename Action>
::testing::AssertionResult dies(const Action& action, std::string_view words) {
  const CapturedStream message(stderr);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      action();
    } catch (...) {
    }
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status == 0)
    return ::testing::AssertionFailure() << "it does not die; it wrote: " << message.text();
  return contains(message.text(), words);
}

}  // namespace snug::testing
