// Keys that recipes of other tools have and that are no keys here: TRL and transformers, axolotl,
// LLaMA-Factory, ms-swift, LitGPT, torchtune. A row says which key of a recipe means the same, or
// with which values the key changes nothing here, or what to do in its place.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "formats/foreign/tool_config.h"

namespace snug::formats {

// What most keys have that change nothing.
inline const std::vector<ToolWord> kFalseOnly = {{"false"}};
inline const std::vector<ToolWord> kTrueOnly = {{"true"}};
inline const std::vector<ToolWord> kZeroOnly = {{"0"}};
inline const std::vector<ToolWord> kOneOnly = {{"1"}};

// All rows; the first that fits a key counts.
const std::vector<ToolKey>& foreign_keys();

// The files that the rows come from, one for each matter.
std::vector<ToolKey> foreign_data_keys();
std::vector<ToolKey> foreign_model_keys();
std::vector<ToolKey> foreign_adapter_keys();
std::vector<ToolKey> foreign_training_keys();
std::vector<ToolKey> foreign_running_keys();
std::vector<ToolKey> litgpt_keys();
std::vector<ToolKey> ms_swift_keys();
std::vector<ToolKey> torchtune_keys();

// Rows of many keys.
class ForeignRows {
 public:
  // What they say changes nothing here.
  ForeignRows& pass_over(std::initializer_list<std::string_view> paths, std::string_view reason);
  // With these values they change nothing here; for all others there is an advice.
  ForeignRows& only(std::initializer_list<std::string_view> paths, std::vector<ToolWord> words,
                    std::string_view advice);
  // The same, where a key without a value is refused as well.
  ForeignRows& only_said(std::initializer_list<std::string_view> paths, std::vector<ToolWord> words,
                         std::string_view advice);
  // Another name of a recipe's key, whose values are those, or these words for them.
  ForeignRows& same_as(std::initializer_list<std::string_view> paths, std::string_view key,
                       std::vector<ToolWord> words = {}, std::string_view advice = "");
  // No value suits.
  ForeignRows& refuse(std::initializer_list<std::string_view> paths, std::string_view advice);

  std::vector<ToolKey> take() { return std::move(rows_); }

 private:
  std::vector<ToolKey> rows_;
};

}  // namespace snug::formats
