#include "generate/compared_documents.h"

#include <algorithm>

namespace snug::generate {
namespace {

constexpr int64_t kFewDocuments = 8;

std::vector<int32_t> ids_of(const text::DocumentStore& store, int64_t document,
                            text::TokenStream stream) {
  std::vector<int32_t> ids(static_cast<size_t>(store.length(document, stream)));
  store.read(document, ids, stream);
  for (int32_t& word : ids) word = text::DocumentStore::id_of(word);
  return ids;
}

void cut(std::vector<int32_t>& ids, int64_t most) {
  if (std::ssize(ids) > most) ids.resize(static_cast<size_t>(std::max<int64_t>(most, 0)));
}

ComparedDocument document_of(const text::DocumentStore& store, int64_t number, int64_t predictions,
                             const models::ModelConfig& model) {
  ComparedDocument document{.encoder_ids = {},
                            .ids = ids_of(store, number, text::TokenStream::decoder)};
  if (!store.has_encoder()) {
    cut(document.ids, std::min(predictions + 1, model.max_position));
    return document;
  }
  document.encoder_ids = ids_of(store, number, text::TokenStream::encoder);
  const int64_t repeated = model.repeats_prompt ? std::ssize(document.encoder_ids) : 0;
  cut(document.ids, std::min(predictions, model.max_position - repeated));
  return document;
}

}  // namespace

int64_t ComparedDocument::predictions() const {
  const bool predicts_first = !encoder_ids.empty();
  return std::max<int64_t>(0, std::ssize(ids) - (predicts_first ? 0 : 1));
}

std::vector<ComparedDocument> compared_documents(const text::DocumentStore& store, int64_t tokens,
                                                 const models::ModelConfig& model) {
  std::vector<ComparedDocument> documents;
  const int64_t sharing = std::clamp<int64_t>(store.size(), 1, kFewDocuments);
  const int64_t share = (tokens + sharing - 1) / sharing;
  int64_t left = tokens;
  for (int64_t number = 0; number < store.size() && left > 0; ++number) {
    ComparedDocument document = document_of(store, number, std::min(share, left), model);
    if (document.predictions() == 0) continue;
    left -= document.predictions();
    documents.push_back(std::move(document));
  }
  return documents;
}

int64_t predictions(std::span<const ComparedDocument> documents) {
  int64_t sum = 0;
  for (const ComparedDocument& document : documents) sum += document.predictions();
  return sum;
}

}  // namespace snug::generate
