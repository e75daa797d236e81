// Limits for templates, so that one from an untrusted folder can exhaust neither the machine nor
// the stack. Published templates stay far below all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace snug::text::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
// Nesting of blocks and expressions in the source.
inline constexpr int kMaxSourceDepth = 200;
// Nesting of expressions and statements while a template runs; a recursive macro adds about ten
// levels per call. Each level takes up to 2 KiB of stack in builds with sanitizers.
inline constexpr int kMaxRunDepth = 1000;
// Nesting of lists and dictionaries.
inline constexpr int kMaxValueDepth = 100;
// Elements and bytes of texts in a list or dictionary, where a shared value counts once for each
// place that refers to it: a chain of lists that each contain the previous one twice is small only
// in memory.
inline constexpr int64_t kMaxUnfoldedSize = int64_t{16} << 20;
// Evaluated expressions and statements, and elements and bytes that are processed (meter.h): less
// than a second of work.
inline constexpr int64_t kMaxSteps = 10'000'000;
// Bytes of memory that one rendering allocates, whether or not they are freed; a conversation as
// long as the longest record (2 MiB) takes about twenty times its size.
inline constexpr int64_t kMaxBytes = int64_t{256} << 20;
// Bytes that one rendering may write. More would not be a conversation, and the caller holds
// several copies of it.
inline constexpr size_t kMaxOutputBytes = size_t{32} << 20;
// Processor time of one rendering: the last limit, for operations whose steps underestimate their
// cost.
inline constexpr int64_t kMaxSeconds = 5;
// The longest result of range(), as in jinja2's sandbox.
inline constexpr int64_t kMaxRange = 100'000;

// An error in reading or running a template; the message does not yet say where.
class TemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace snug::text::jinja
