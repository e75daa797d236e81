// Records of TensorBoard's event files, as bytes. A file is a TFRecord file: each record has its
// length and two masked CRC-32C, and holds one protobuf message of the type tensorflow.Event. Snug
// writes four of its fields and reads none, so the few lines that encode them stand here: a library
// of protobuf would be larger than all of Snug's reports. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace snug::report {

struct EventScalar {
  std::string tag;
  float value = 0;
};

// The first record of every file.
std::string version_record(double unix_seconds);
// A run goes on in a new file: what earlier files have of `step` and later ones does not count.
std::string restart_record(double unix_seconds, int64_t step);
std::string scalars_record(double unix_seconds, int64_t step, std::span<const EventScalar> scalars);
// A text, which TensorBoard shows as Markdown.
std::string text_record(double unix_seconds, int64_t step, std::string_view tag,
                        std::string_view text);

}  // namespace snug::report
