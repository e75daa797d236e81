// Prints what a run would learn of its data, for scripts/oracles/check_learned: for each document
// one line of JSON with the ids, which of them are targets, and the label where there is one.
//   dump_learned [KEY=VALUE...]
// takes the keys of a training run, of which model and data must be there.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/recipe_backend.h"
#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/spec/resolve.h"
#include "train/data.h"

namespace {

using namespace snug;

nlohmann::json document_of(const text::DocumentStore& store, int64_t document) {
  std::vector<int32_t> words(static_cast<size_t>(store.length(document)));
  store.read(document, words);
  nlohmann::json ids = nlohmann::json::array();
  nlohmann::json targets = nlohmann::json::array();
  for (const int32_t word : words) {
    ids.push_back(text::DocumentStore::id_of(word));
    targets.push_back(text::DocumentStore::is_target(word) ? 1 : 0);
  }
  return {{"ids", ids}, {"targets", targets}, {"label", static_cast<int>(store.label(document))}};
}

void dump(const std::vector<std::string>& words) {
  formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  recipe = plan::resolve(std::move(recipe), model.config);
  const auto target = backends::open_backend(recipe);
  const train::RunData data = train::load_data(recipe, model, *target);
  const text::DocumentStore& store = data.training->dataset.documents;
  for (int64_t document = 0; document < store.size(); ++document)
    std::cout << document_of(store, document).dump() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    dump({argv + 1, argv + argc});
  } catch (const base::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
