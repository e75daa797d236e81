// Regular expressions in Python's syntax with the meaning of Python's `re` for texts, run by PCRE2.
// Syntax that PCRE2 reads differently is translated or refused. Immutable and
// cheap to copy; its functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace snug::base {

class PythonPattern {
 public:
  enum class Where : uint8_t {
    anywhere,  // re.search, re.findall, re.sub
    whole,     // re.fullmatch
  };

  // Throws std::invalid_argument that says what is wrong with `pattern`, or what in it is not
  // supported.
  explicit PythonPattern(const std::string& pattern, Where where = Where::anywhere);

  // Whether there is a match. Throws std::invalid_argument where matching exceeds the engine's
  // limits, as the functions below do.
  bool matches(std::string_view text) const;

  // re.findall with all groups: of each match first its whole text, then that of each group, which
  // is empty for a group that took no part.
  using Match = std::vector<std::string>;
  std::vector<Match> find_all(std::string_view text) const;

  // re.sub: `with` stands in place of each match as it is; a backslash in it has no meaning.
  std::string replace_all(std::string_view text, std::string_view with) const;

 private:
  struct Found {
    size_t begin = 0;
    size_t end = 0;
    Match texts;
  };
  std::vector<Found> found_in(std::string_view text) const;

  std::string written_;
  std::shared_ptr<const pcre2_real_code_8> code_;
};

}  // namespace snug::base
