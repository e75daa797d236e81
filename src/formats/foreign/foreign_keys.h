// Keys in recipes of other tools that are not keys here: TRL and transformers, axolotl,
// LLaMA-Factory, ms-swift, LitGPT, torchtune. Each row gives the recipe's key with the same
// meaning, or the values with which the key changes nothing here, or what to do instead.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "formats/foreign/tool_config.h"

namespace snug::formats {

// The values with which most keys change nothing.
inline const std::vector<ToolWord> kFalseOnly = {{"false"}};
inline const std::vector<ToolWord> kTrueOnly = {{"true"}};
inline const std::vector<ToolWord> kZeroOnly = {{"0"}};
inline const std::vector<ToolWord> kOneOnly = {{"1"}};

// All rows; the first that matches a key applies.
const std::vector<ToolKey>& foreign_keys();

// The rows of each subject, one file for each.
std::vector<ToolKey> foreign_data_keys();
std::vector<ToolKey> foreign_model_keys();
std::vector<ToolKey> foreign_adapter_keys();
std::vector<ToolKey> foreign_training_keys();
std::vector<ToolKey> foreign_running_keys();
std::vector<ToolKey> litgpt_keys();
std::vector<ToolKey> ms_swift_keys();
std::vector<ToolKey> torchtune_keys();

// Adds rows for several keys at once.
class ForeignRows {
 public:
  // Keys that change nothing here.
  ForeignRows& pass_over(std::initializer_list<std::string_view> paths, std::string_view reason);
  // Keys that change nothing here with these values; all others are refused with the advice.
  ForeignRows& only(std::initializer_list<std::string_view> paths, std::vector<ToolWord> words,
                    std::string_view advice);
  // The same, but a key without a value is refused as well.
  ForeignRows& only_said(std::initializer_list<std::string_view> paths, std::vector<ToolWord> words,
                         std::string_view advice);
  // Other names of a recipe's key, with the same values, or with these words for them.
  ForeignRows& same_as(std::initializer_list<std::string_view> paths, std::string_view key,
                       std::vector<ToolWord> words = {}, std::string_view advice = "");
  // Keys that are refused with any value.
  ForeignRows& refuse(std::initializer_list<std::string_view> paths, std::string_view advice);

  std::vector<ToolKey> take() { return std::move(rows_); }

 private:
  std::vector<ToolKey> rows_;
};

}  // namespace snug::formats
