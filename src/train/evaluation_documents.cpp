#include "train/evaluation_documents.h"

#include <iterator>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/choice/choose_length.h"
#include "train/data_sources.h"
#include "train/lazy_tokenizer.h"

namespace snug::train {
namespace {

std::vector<text::RecordSource> sources_of_all_sets(const formats::Recipe& recipe,
                                                    const text::DatasetOptions& options) {
  std::vector<text::RecordSource> sources;
  for (EvaluationSources& set : evaluation_sources(recipe, options))
    sources.insert(sources.end(), std::move_iterator(set.sources.begin()),
                   std::move_iterator(set.sources.end()));
  return sources;
}

}  // namespace

text::Dataset evaluation_documents(const formats::Recipe& given, const models::ModelSource& model) {
  SNUG_CHECK(given.evaluates(), "nothing to evaluate on");
  const formats::Recipe recipe = plan::with_open_length(given, model.config);
  const text::DatasetOptions options = document_options(recipe, model.config);
  LazyTokenizer tokenizer(recipe, model);
  const auto open = [&]() -> const text::Tokenizer& { return tokenizer.open(); };
  if (!recipe.eval_data.empty())
    return text::load_datasets(sources_of_all_sets(recipe, options), open).training;
  recipe.require("data");
  const std::vector<text::RecordSource> sources = training_sources(recipe, options);
  return text::load_datasets(sources, open, held_out_records(recipe, sources, open)).held_out;
}

}  // namespace snug::train
