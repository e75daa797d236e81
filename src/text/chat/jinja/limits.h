// What a template may use, so that one from an untrusted folder can neither exhaust the machine nor
// the stack. Published templates stay far below each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace snug::text::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
// Blocks and expressions within each other in the source.
inline constexpr int kMaxSourceDepth = 200;
// Expressions and statements that wait for each other while a template runs; a macro that calls
// itself adds about ten a call. Each takes up to 2 KiB of stack where sanitizers widen the frames.
inline constexpr int kMaxRunDepth = 1000;
// Lists and dictionaries within each other.
inline constexpr int kMaxValueDepth = 100;
// Elements and bytes of texts in a list or dictionary, what is shared within it counted as often as
// it stands there: a chain of lists that hold the one before twice stays short in memory alone.
inline constexpr int64_t kMaxUnfoldedSize = int64_t{16} << 20;
// Expressions, statements, elements and bytes that are looked at (meter.h): under a second of work.
inline constexpr int64_t kMaxSteps = 10'000'000;
// Bytes of memory that one rendering asks for, given back or not; a conversation as long as the
// longest record (2 MiB) takes about twenty times its size.
inline constexpr int64_t kMaxBytes = int64_t{256} << 20;
// What one rendering may write; more is no conversation, and what reads it would hold it several
// times.
inline constexpr size_t kMaxOutputBytes = size_t{32} << 20;
// Processor time of one rendering: the last bound, for what steps are too low a price of.
inline constexpr int64_t kMaxSeconds = 5;
// The most that range() gives, as in jinja2's sandbox.
inline constexpr int64_t kMaxRange = 100'000;

// A template that cannot be read or run; the message has no place yet.
class TemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace snug::text::jinja
