#include "cli/merge_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/merge_card.h"
#include "convert/folder/model_card.h"
#include "convert/folder/quantize_folder.h"
#include "formats/folder/staging_folder.h"
#include "plan/choice/fit.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using base::readable_byte_size;
using convert::FolderCosts;
using formats::MergeInto;
using generate::TrainedOutputs;

// As inference quantises a folder while it reads it.
convert::FolderQuantizer quantizer_of(const MergeJob& job, const MergeVariant& variant) {
  return {variant.model,
          {.double_quant = job.trained.double_quant,
           .keep_fp32 = job.dtype_of_training() == formats::ComputeDtype::fp32,
           .head = job.trained.load_head_in_4bit}};
}

convert::MergeInputs inputs_of(const MergeJob& job, const fs::path& model) {
  convert::MergeInputs inputs = job.inputs;
  inputs.model = model;
  return inputs;
}

void add(FolderCosts& sum, const FolderCosts& costs) {
  sum.source_bytes += costs.source_bytes;
  sum.result_bytes += costs.result_bytes;
  sum.buffer_bytes = std::max(sum.buffer_bytes, costs.buffer_bytes);
}

FolderCosts folder_costs(const MergeJob& job) {
  FolderCosts costs;
  for (const MergeVariant& variant : job.variants) {
    if (variant.quantises) add(costs, quantizer_of(job, variant).plan());
    add(costs, convert::FolderMerger(inputs_of(job, variant.model)).plan());
  }
  return costs;
}

// Of a refusal, whose further ones say how another job would fit.
std::string first_sentence(const base::UserError& error) {
  const std::string message = error.what();
  return message.substr(0, message.find(". "));
}

std::string word_in_recipes(base::DType type) {
  using formats::ComputeDtype;
  if (type == base::DType::f32) return std::string(base::word_of(ComputeDtype::fp32));
  return std::string(
      base::word_of(type == base::DType::f16 ? ComputeDtype::fp16 : ComputeDtype::bf16));
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) base::throw_system_error("remove", folder, error.value());
}

void create_parent(const fs::path& folder) {
  const fs::path parent = fs::absolute(folder).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) base::throw_system_error("create", parent, error.value());
}

// Makes the folders in a place of their own, from which one goes to its name.
class Maker {
 public:
  Maker(const MergeJob& job, const MergeText& text, const SayLine& say)
      : job_(job), text_(text), say_(say), variants_(job.variants) {
    outcome_.max_drift = job.recipe.max_drift;
    outcome_.not_measured = text.missing;
    outcome_.text = text.source;
  }

  MergeOutcome run() {
    convert::check_output(job_.output(), folder_costs(job_).result_bytes);
    if (outcome_.not_measured.empty()) run_trained();
    if (!outcome_.not_measured.empty()) leave_out_what_cannot_be_compared();
    stage();
    for (const MergeVariant& variant : variants_) make(variant);
    outcome_.kept = choose();
    keep();
    return std::move(outcome_);
  }

 private:
  void stage() {
    create_parent(job_.output());
    formats::remove_leftovers(fs::absolute(job_.output()).parent_path());
    staging_.emplace(job_.output());
    fs::create_directory(staging_->fresh());
  }

  // A machine that can merge a model tensor by tensor may have no room to run it.
  template <typename Run>
  void try_to_measure(const Run& run) {
    try {
      run();
    } catch (const base::UserError& error) {
      if (error.exit_code() != plan::kDoesNotFitExitCode) throw;
      outcome_.not_measured =
          fmt::format("for it the model must run, and {}", first_sentence(error));
    }
  }

  void run_trained() {
    trained_ = std::make_unique<TrainedOutputs>(job_.trained, text_.documents);
    outcome_.costs = trained_->costs();
    say_(
        fmt::format("compares {} tokens of {} documents ({}); {} of logits lie on the disk "
                    "meanwhile",
                    outcome_.costs.tokens, outcome_.costs.documents, text_.source,
                    readable_byte_size(outcome_.costs.kept_bytes)));
    try_to_measure([&] { trained_->compute(); });
    outcome_.compute_dtype = word_in_recipes(trained_->compute_type());
    take_arena();
  }

  void take_arena() {
    outcome_.arena_bytes = std::max(outcome_.arena_bytes, trained_->arena_bytes());
  }

  // Without a comparison there is nothing to choose by: what was trained on it is.
  void leave_out_what_cannot_be_compared() {
    if (variants_.size() == 1) return;
    std::erase_if(variants_, [](const MergeVariant& v) { return v.base != MergedInto::nf4; });
    outcome_.kept_because =
        "the adapter was trained on them, and the merge into the model in 16 bits could not be "
        "compared (merge_into=16bit makes it)";
  }

  fs::path place_of(const MergeVariant& variant) const {
    return staging_->fresh() / base::word_of(variant.base);
  }

  void make(const MergeVariant& variant) {
    MergedVariant made{.base = variant.base};
    if (variant.quantises) {
      const fs::path quantised = staging_->fresh() / "quantised";
      quantizer_of(job_, variant).write(quantised);
      made.report = merge(quantised, place_of(variant));
      remove_folder(quantised);
    } else {
      made.report = merge(variant.model, place_of(variant));
    }
    if (outcome_.not_measured.empty())
      try_to_measure([&] {
        made.drift = trained_->compare(place_of(variant).string());
        take_arena();
      });
    outcome_.variants.push_back(made);
  }

  convert::FolderReport merge(const fs::path& model, const fs::path& place) const {
    return convert::FolderMerger(inputs_of(job_, model)).write(place);
  }

  // NF4's values are what was trained on, so they stay where nothing tells the two apart.
  size_t choose() {
    const std::vector<MergedVariant>& made = outcome_.variants;
    if (made.size() == 1) return 0;
    if (!made[0].drift || !made[1].drift) {
      outcome_.kept_because = "the adapter was trained on them, and the two could not be compared";
      return 1;
    }
    outcome_.kept_because = "the drift is smaller there";
    return made[0].drift->mean_kl < made[1].drift->mean_kl ? 0 : 1;
  }

  void keep() {
    const fs::path kept = staging_->fresh() / base::word_of(outcome_.result().base);
    convert::write_model_card(kept, merge_card(job_, outcome_));
    base::rename_durably(kept, job_.output());
    staging_->remove();
  }

  const MergeJob& job_;
  const MergeText& text_;
  const SayLine& say_;
  std::vector<MergeVariant> variants_;
  std::unique_ptr<TrainedOutputs> trained_;
  std::optional<formats::StagingFolder> staging_;
  MergeOutcome outcome_;
};

}  // namespace

bool MergeOutcome::exceeds_drift() const {
  const auto& drift = result().drift;
  return drift && !(drift->mean_kl <= max_drift);  // what is no number, too
}

convert::FolderReport MergeOutcome::report() const {
  convert::FolderReport sum;
  for (const MergedVariant& variant : variants) sum.seconds += variant.report.seconds;
  sum.result_bytes = result().report.result_bytes;
  return sum;
}

FolderCosts merge_costs(const MergeJob& job, const MergeText& text) {
  FolderCosts costs = folder_costs(job);
  if (text.documents.empty()) return costs;
  try {
    const auto memory = generate::planned_drift_memory(job.trained, text.documents);
    costs.buffer_bytes = std::max(costs.buffer_bytes, memory.arena_bytes);
  } catch (const base::UserError& error) {
    // Then it is not compared, which the merge says.
    if (error.exit_code() != plan::kDoesNotFitExitCode) throw;
  }
  return costs;
}

MergeOutcome make_merged(const MergeJob& job, const MergeText& text, const SayLine& say) {
  return Maker(job, text, say).run();
}

}  // namespace snug::cli
