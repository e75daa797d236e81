// Patterns of paths, as a shell has them: * and ? stand for letters of one name, [a-c] and [!a-c]
// for one letter, and ** as a whole part of the path for any number of folders, or none. What
// begins with a dot, and a folder that begins with two underscores, are matched only by a part that
// begins so too, as in the `datasets` library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

class PathPattern {
 public:
  static bool is_pattern(std::string_view path);

  // Throws UserError where ** is not a whole part.
  explicit PathPattern(std::string_view pattern);

  bool matches(std::string_view path) const;

  // The folder before the first part that is a pattern, with its '/'; empty for the current one.
  const std::string& folder() const { return folder_; }
  // The rest of the pattern, below that folder.
  PathPattern below_folder() const;
  bool names_hidden() const;
  // How many folders deep below folder() what it matches lies; 0: any number.
  int depth() const;

 private:
  PathPattern() = default;

  std::vector<std::string> parts_;
  std::string folder_;
};

// One name against one part; `?` and [..] take a letter of UTF-8 each.
bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace snug::formats
