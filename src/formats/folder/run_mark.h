// The mark of a folder as that of a run: the first that a run writes there. What a run finds in a
// folder without it is a user's.
#pragma once

namespace snug::formats {

inline constexpr const char* kRunMark = ".snug_run.json";

}  // namespace snug::formats
