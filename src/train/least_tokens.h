// The fewest tokens of a row that leave something to learn of each document: of an answer its first
// token. Reads all documents, so it is asked where shorter rows than those of the data are looked
// for.
#pragma once

#include <cstdint>

#include "text/row/document_store.h"

namespace snug::train {

int64_t least_tokens(const text::DocumentStore& documents);

}  // namespace snug::train
