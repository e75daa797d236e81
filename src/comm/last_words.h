// How the ranks of a job end after an error: each with the exit code of the rank that failed, and
// one of them tells the user.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace snug::comm {

class Communicator;

// The error of a rank that stops because another one stopped or is missing.
class OtherRankError : public base::UserError {
 public:
  OtherRankError(const std::string& message, int exit_code, bool was_told)
      : UserError(message, {}, exit_code), was_told_(was_told) {}
  // True where another rank gave the reason, false where this rank found out by itself.
  bool was_told() const { return was_told_; }

 private:
  bool was_told_;
};

// The error that a rank ends with.
struct Ending {
  enum class Cause : uint8_t {
    own,
    told,     // another rank said that the job ends
    missing,  // another rank did not arrive, or its process is gone
  };
  std::string text;
  int exit_code = base::UserError::kExitCode;
  Cause cause = Cause::own;
};

// Makes the other ranks fail as well, and returns whether this rank should tell the user its error.
// It should not where it was told of another rank's error, nor where a lower rank ends with the
// same error or also found a rank missing. Waits at most a second for the lower ranks. `ranks`
// connects all ranks and cannot be used afterwards.
bool is_to_say(Communicator& ranks, const Ending& ending);

}  // namespace snug::comm
