// A run whose calls on files below one folder are listed, and one of them disturbed: ptrace stops
// the process at each (seccomp lets it pass all others), whichever library makes it and in
// whichever thread. Needs a kernel that lets a process trace its children.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "child.h"
#include "file_call.h"

namespace snug::hostile {

enum class Way {
  none,
  kill,     // before the call
  torn,     // half of the bytes are read or written, then killed
  fail,     // the call is not made and answers with an error
  shorten,  // half of the bytes are read or written
};

struct Disturbance {
  Way way = Way::none;
  int64_t call = -1;  // which, from 0
  int error_number = 0;
};

struct TracedRun {
  Ended end;
  std::vector<FileCall> calls;  // up to the end
};

TracedRun run_traced(const Command& command, const std::filesystem::path& folder,
                     const Disturbance& disturbance);

// False where the kernel forbids tracing.
bool can_trace();

}  // namespace snug::hostile
