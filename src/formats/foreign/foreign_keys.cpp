#include "formats/foreign/foreign_keys.h"

#include <utility>

namespace snug::formats {

ForeignRows& ForeignRows::pass_over(std::initializer_list<std::string_view> paths,
                                    std::string_view reason) {
  for (const std::string_view path : paths) rows_.push_back({path, "", {}, reason});
  return *this;
}

ForeignRows& ForeignRows::only(std::initializer_list<std::string_view> paths,
                               std::vector<ToolWord> words, std::string_view advice) {
  for (const std::string_view path : paths) rows_.push_back({path, "", words, advice});
  return *this;
}

ForeignRows& ForeignRows::only_said(std::initializer_list<std::string_view> paths,
                                    std::vector<ToolWord> words, std::string_view advice) {
  for (const std::string_view path : paths) rows_.push_back({path, "", words, advice, true});
  return *this;
}

ForeignRows& ForeignRows::same_as(std::initializer_list<std::string_view> paths,
                                  std::string_view key, std::vector<ToolWord> words,
                                  std::string_view advice) {
  for (const std::string_view path : paths) rows_.push_back({path, key, words, advice});
  return *this;
}

ForeignRows& ForeignRows::refuse(std::initializer_list<std::string_view> paths,
                                 std::string_view advice) {
  return only(paths, kNever, advice);
}

const std::vector<ToolKey>& foreign_keys() {
  static const std::vector<ToolKey> rows = [] {
    std::vector<ToolKey> all;
    for (const std::vector<ToolKey>& part :
         std::vector{foreign_data_keys(), foreign_model_keys(), foreign_adapter_keys(),
                     foreign_training_keys(), foreign_running_keys(), litgpt_keys(),
                     ms_swift_keys(), torchtune_keys()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

}  // namespace snug::formats
