#include "cli/merge_card.h"

#include "base/words.h"
#include "models/config/config.h"

namespace snug::cli {
namespace {

convert::CardDrift card_drift(const MergedVariant& variant, bool is_kept) {
  const generate::Drift& drift = *variant.drift;
  return {.variant = "into " + std::string(description_of(variant.base)),
          .is_kept = is_kept,
          .tokens = drift.tokens,
          .mean_kl = drift.mean_kl,
          .most_kl = drift.most_kl,
          .mean_difference = drift.mean_difference,
          .most_difference = drift.most_difference,
          .equal_greedy = drift.equal_greedy};
}

}  // namespace

convert::CardInputs merge_card(const MergeJob& job, const MergeOutcome& outcome) {
  convert::CardInputs card{.kind = convert::CardKind::merged,
                           .title = job.output().filename().string(),
                           .model = job.inputs.model,
                           .model_name = job.recipe.model,
                           .adapter = job.inputs.adapter};
  card.has_encoder = job.does_not_run.empty() &&
                     models::find_model(job.inputs.model.string()).config.has_encoder();
  for (size_t i = 0; i < outcome.variants.size(); ++i)
    if (outcome.variants[i].drift)
      card.drifts.push_back(card_drift(outcome.variants[i], i == outcome.kept));
  return card;
}

}  // namespace snug::cli
