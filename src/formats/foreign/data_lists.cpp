// Lists of data sets: axolotl's and TRL's, torchtune's, and the alignment handbook's.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/lower_case.h"
#include "formats/foreign/data_sides.h"
#include "formats/foreign/dataset_mixture.h"
#include "formats/foreign/tool_entries.h"
#include "formats/foreign/torchtune_dataset.h"

namespace snug::formats {
namespace {

// A list to train on, and one to evaluate on.
struct TwoLists {
  std::optional<Written> training;
  std::optional<Written> evaluation;
};

// Where the two are parts of one set, the second is none of its own.
template <typename Read>
void add_two(DataSides& sides, const TwoLists& lists, const Read& read) {
  std::vector<ToolEntry> training;
  std::vector<ToolEntry> evaluation;
  if (lists.training) training = tool_entries(*lists.training);
  if (lists.evaluation) evaluation = tool_entries(*lists.evaluation);
  if (const double share = held_out_share(training, evaluation); share > 0) {
    evaluation.clear();
    sides.set("val_set_size", fmt::format("{}", share), *lists.evaluation);
  }
  if (lists.training) sides.add(sides.data, *lists.training, read(training, false));
  if (!evaluation.empty()) sides.add(sides.evaluation, *lists.evaluation, read(evaluation, true));
}

// torchtune's, which is a map or a list of maps with a builder.
std::optional<Written> take_built(DataSides& sides, std::string_view key) {
  const Written* written = sides.find(key);
  const bool is_built =
      written != nullptr && written->items.front().find("_component_") != std::string::npos;
  return is_built ? sides.take(key) : std::nullopt;
}

void add_texts(DataSides& sides, const Written& written) {
  std::vector<ToolEntry> entries = tool_entries(written);
  for (ToolEntry& entry : entries)
    if (entry.find("type") == nullptr)
      entry.keys.push_back({"type", {"pretrain"}, false, written.where});
  sides.add(sides.data, written, read_dataset_list(entries, sides.file, ""));
}

void add_mixture(DataSides& sides, const Written& written) {
  Mixture mixture = read_mixture(written, sides.file);
  if (!mixture.test_size.empty()) sides.set("val_set_size", mixture.test_size, written);
  sides.add(sides.data, written, std::move(mixture.datasets));
}

}  // namespace

void take_lists(DataSides& sides) {
  base::Mistakes& mistakes = sides.config.mistakes;
  const std::string rl = base::lower_case(sides.value_of("rl"));
  const TwoLists listed{sides.take("datasets"), sides.take("test_datasets")};
  mistakes.gather([&] {
    add_two(sides, listed, [&](const std::vector<ToolEntry>& entries, bool) {
      return read_dataset_list(entries, sides.file, rl);
    });
  });
  const TwoLists built{take_built(sides, "dataset"), take_built(sides, "dataset_val")};
  mistakes.gather([&] {
    add_two(sides, built, [&](const std::vector<ToolEntry>& entries, bool is_evaluation) {
      return read_torchtune_list(entries, sides.file, is_evaluation);
    });
  });
  if (const auto texts = sides.take("pretraining_dataset"))
    mistakes.gather([&] { add_texts(sides, *texts); });
  if (const auto mixture = sides.take("dataset_mixture"))
    mistakes.gather([&] { add_mixture(sides, *mixture); });
}

}  // namespace snug::formats
