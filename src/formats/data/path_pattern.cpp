#include "formats/data/path_pattern.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"

namespace snug::formats {
namespace {

constexpr std::string_view kAnyFolders = "**";

std::vector<std::string> path_parts(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

// The bytes of the letter that the text begins with.
size_t letter_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return bytes;
}

std::string_view take_letter(std::string_view& text) {
  const std::string_view letter = text.substr(0, letter_bytes(text));
  text.remove_prefix(letter.size());
  return letter;
}

// A set [..] at the beginning of the pattern: whether it holds the letter. Nothing where no bracket
// closes it; then it is a letter like others. In UTF-8 the order of bytes is that of letters.
std::optional<bool> take_set(std::string_view& pattern, std::string_view letter) {
  std::string_view rest = pattern.substr(1);
  const bool is_negated = !rest.empty() && (rest[0] == '!' || rest[0] == '^');
  if (is_negated) rest.remove_prefix(1);
  const size_t end = rest.find(']', 1);  // one right after the bracket belongs to the set
  if (rest.empty() || end == std::string_view::npos) return std::nullopt;
  pattern = rest.substr(end + 1);
  std::string_view set = rest.substr(0, end);
  bool holds = false;
  while (!set.empty()) {
    const std::string_view first = take_letter(set);
    std::string_view last = first;
    if (set.size() > 1 && set[0] == '-') {
      set.remove_prefix(1);
      last = take_letter(set);
    }
    holds = holds || (first <= letter && letter <= last);
  }
  return holds != is_negated;
}

// Takes a letter of the pattern, other than *, and one of the name.
bool take_match(std::string_view& pattern, std::string_view& name) {
  const std::string_view letter = take_letter(name);
  if (pattern[0] == '[')
    if (const auto holds = take_set(pattern, letter)) return *holds;
  const std::string_view wanted = take_letter(pattern);
  return wanted == "?" || wanted == letter;
}

bool is_special(std::string_view part, bool is_folder) {
  return (part.starts_with('.') && part != "..") || (is_folder && part.starts_with("__"));
}

using PathParts = std::vector<std::string>;

bool part_matches(const std::string& pattern, const std::string& part, bool is_folder) {
  if (is_special(part, is_folder) && !is_special(pattern, is_folder)) return false;
  return name_matches(pattern, part);
}

// reached[i]: whether the first i parts of the path match all of the pattern before.
using Reached = std::vector<bool>;

// What ** adds: any number of folders, or, where it is the last part, all that follows.
Reached after_any_folders(Reached reached, const PathParts& path, bool is_last) {
  Reached next = is_last ? Reached(reached.size(), false) : reached;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_folder = i + 1 < path.size();
    const bool is_taken = !is_special(path[i], is_folder) && (is_folder || is_last);
    if (is_taken && (reached[i] || next[i])) next[i + 1] = true;
  }
  return next;
}

}  // namespace

bool name_matches(std::string_view pattern, std::string_view name) {
  // Where the last * stands, and how much of the name it has not taken yet.
  std::optional<std::string_view> after_star;
  std::string_view left;
  while (!name.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      after_star = pattern;
      left = name;
      continue;
    }
    if (!pattern.empty() && take_match(pattern, name)) continue;
    if (!after_star) return false;
    pattern = *after_star;
    take_letter(left);
    name = left;
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

bool PathPattern::is_pattern(std::string_view path) {
  return path.find_first_of("*?[") != std::string_view::npos;
}

PathPattern::PathPattern(std::string_view pattern) : parts_(path_parts(pattern)) {
  for (const std::string& part : parts_)
    if (part != kAnyFolders && part.find(kAnyFolders) != std::string::npos)
      base::throw_user_error(
          "\"{}\" has '{}': ** stands for folders, and is a part of its own, as in **/*.jsonl",
          pattern, part);
  if (pattern.starts_with('/')) folder_.assign(1, '/');
  for (const std::string& part : parts_) {
    if (is_pattern(part) || &part == &parts_.back()) break;
    folder_ += part + "/";
  }
}

bool PathPattern::matches(std::string_view path) const {
  const PathParts parts = path_parts(path);
  Reached reached(parts.size() + 1, false);
  reached[0] = true;
  for (const std::string& pattern : parts_) {
    if (pattern == kAnyFolders) {
      reached = after_any_folders(std::move(reached), parts, &pattern == &parts_.back());
      continue;
    }
    Reached next(reached.size(), false);
    for (size_t i = 0; i < parts.size(); ++i)
      next[i + 1] = reached[i] && part_matches(pattern, parts[i], i + 1 < parts.size());
    reached = std::move(next);
  }
  return reached.back();
}

PathPattern PathPattern::below_folder() const {
  PathPattern below;
  below.parts_.assign(parts_.begin() + std::ssize(path_parts(folder_)), parts_.end());
  return below;
}

bool PathPattern::names_hidden() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return is_special(part, true); });
}

int PathPattern::depth() const {
  if (std::ranges::find(parts_, kAnyFolders) != parts_.end()) return 0;
  return static_cast<int>(std::ssize(parts_) - std::ssize(path_parts(folder_)));
}

}  // namespace snug::formats
