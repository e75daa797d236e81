// LLaMA-Factory's dataset_info.json: what the names of data sets stand for, and how their records
// are read. All of its data are conversations, which the recipe's template writes; only stage: pt
// learns texts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign/tool_config.h"
#include "formats/recipe/data_entry.h"

namespace snug::formats {

class DatasetInfo {
 public:
  // Reads FOLDER/dataset_info.json. Throws UserError where it cannot be read.
  explicit DatasetInfo(const std::string& folder);
  ~DatasetInfo();

  bool has(const std::string& name) const;
  // The entry of a name. Its file lies in the folder. Notes and mistakes, which have the file's
  // lines, are added to `said`. Throws UserError for a name that the file does not have.
  std::optional<DataEntry> entry(const std::string& name, bool learns_texts,
                                 ToolConfig& said) const;

 private:
  struct Content;
  [[noreturn]] void fail_unknown(const std::string& name) const;

  std::string folder_;
  std::string file_;
  std::unique_ptr<Content> content_;
};

// Whether a folder has such a file.
bool has_dataset_info(const std::string& folder);

}  // namespace snug::formats
