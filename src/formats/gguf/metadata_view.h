// Typed access to the pairs of a GGUF file, which names the file and the key in every error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"

namespace snug::formats {

class MetadataView {
 public:
  // The metadata must outlive the view.
  MetadataView(const Metadata& metadata, std::string file)
      : metadata_(&metadata), file_(std::move(file)) {}

  bool has(std::string_view key) const { return metadata_->find(key) != nullptr; }
  // Throw UserError unless the key is present and of this type. Integers of every width are one
  // type; a number is finite, and may be an integer.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  // One integer, or an array of `count` of them: keys of layers have either form.
  std::vector<int64_t> integers(std::string_view key, int64_t count) const;
  // One number for each of `count` layers, or one for all of them.
  std::vector<double> numbers(std::string_view key, int64_t count) const;

  int64_t integer_or(std::string_view key, int64_t fallback) const;
  double number_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;

  const Metadata& metadata() const { return *metadata_; }
  const std::string& file() const { return file_; }
  // Throws a UserError that names this file and `key`, and says what is wrong with it.
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  const MetadataValue& at(std::string_view key) const;

  const Metadata* metadata_;
  std::string file_;
};

}  // namespace snug::formats
