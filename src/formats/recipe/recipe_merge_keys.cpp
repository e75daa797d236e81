#include "base/words.h"
#include "formats/recipe/recipe_table.h"

namespace snug::formats {

void add_merge_keys(KeyTable& table) {
  table.group("Merging", kTraining | kMerge, OnResume::ignored);
  table
      .add<&Recipe::merge>("merge", "false",
                           "when the run has ended, merge its adapter into the model, as "
                           "OUTPUT_DIR/merged")
      .verbs(kTraining);
  table
      .add_size<&Recipe::max_shard_size>("max_shard_size", "5GB",
                                         "size of the largest file of a merged model's weights")
      .range(at_least(1));
  table
      .add<&Recipe::base>("base", "",
                          "of a model in 4 bits, the folder in 16 bits that it was made of")
      .computed("none");
  table.add<&Recipe::merge_into>(
      "merge_into", MergeInto::automatic,
      "of a model that was trained in 4 bits: merge into the model in 16 bits (16bit), into the "
      "values of NF4 on which the adapter was trained (nf4), or where the drift is smaller (auto)");
  table
      .add<&Recipe::max_drift>("max_drift", "0.001",
                               "mean KL divergence of the merged model from the trained one above "
                               "which merge ends with exit code 4")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::drift_tokens>("drift_tokens", "1024",
                                  "tokens of the evaluation data on which a merge is compared with "
                                  "what was trained, at most; 0: it is not compared")
      .range({.least = 0, .most = kMaxTokens});
  table
      .add<&Recipe::drift_dtype>(
          "drift_dtype", ComputeDtype::automatic,
          "type in which a merge is compared with what was trained; auto: the one in which the run "
          "computed; fp32 leaves out how 16 bits round activations")
      .translations({{"bfloat16", base::word_of(ComputeDtype::bf16)},
                     {"float16", base::word_of(ComputeDtype::fp16)},
                     {"half", base::word_of(ComputeDtype::fp16)},
                     {"float32", base::word_of(ComputeDtype::fp32)}});
}

}  // namespace snug::formats
