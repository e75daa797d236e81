// What tests of files and of users' mistakes share.
#pragma once

#include "base/error.h"
#include "base/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>

namespace snug::testing {

// A fresh folder under the system's temporary one, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "snug-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) base::throw_system_error("create", pattern, errno);
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Writes a file, with its folders, and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    base::write_file_atomically(path, text);
    return path;
  }
  // Files and folders directly inside.
  size_t count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

// The message of the UserError that `action` throws.
template <typename Action>
std::string user_error_of(const Action& action) {
  try {
    action();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "(no error)";
}

inline ::testing::AssertionResult contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

}  // namespace snug::testing
