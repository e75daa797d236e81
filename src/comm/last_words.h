// How the ranks of a job end with an error: each with the exit code of the one whose error it is,
// and one of them tells the user.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace snug::comm {

class Communicator;

// What a rank gets for an error where another one stopped or is missing.
class OtherRankError : public base::UserError {
 public:
  OtherRankError(const std::string& message, int exit_code, bool was_told)
      : UserError(message, {}, exit_code), was_told_(was_told) {}
  // Whether another rank said why; it found out by itself otherwise.
  bool was_told() const { return was_told_; }

 private:
  bool was_told_;
};

// What a rank ends with.
struct Ending {
  enum class Cause : uint8_t {
    own,
    told,     // another rank said that the job ends
    missing,  // another rank did not come, or its process is gone
  };
  std::string text;
  int exit_code = base::UserError::kExitCode;
  Cause cause = Cause::own;
};

// Lets the other ranks fail too, and says whether this one tells the user what it ends with: not
// where it was told of another's error, nor where a rank before it ends with the same error or
// found a rank missing too. Waits for those before it, for a second at most. The communicator is
// one of all ranks, and of no more use afterwards.
bool is_to_say(Communicator& ranks, const Ending& ending);

}  // namespace snug::comm
