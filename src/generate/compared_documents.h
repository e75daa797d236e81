// The documents on which two models are compared: some tokens of the first documents of a store.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "text/row/document_store.h"

namespace snug::generate {

// Each id is predicted from those before it. With an encoder, which reads `encoder_ids`, so is the
// first.
struct ComparedDocument {
  std::vector<int32_t> encoder_ids;
  std::vector<int32_t> ids;

  int64_t predictions() const;
};

// Documents with at most `tokens` predictions in all. A document gives an eighth of them at most,
// or an even share where there are fewer documents, so that one long document is not all that is
// compared. What is longer, or has no position in the model, is cut.
std::vector<ComparedDocument> compared_documents(const text::DocumentStore& store, int64_t tokens,
                                                 const models::ModelConfig& model);

int64_t predictions(std::span<const ComparedDocument> documents);

}  // namespace snug::generate
