// The schema of a Parquet file as a tree of what JSON has: objects, lists, maps and values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/source/parquet/column.h"
#include "text/source/parquet/metadata.h"

namespace snug::text::parquet {

struct Node {
  enum class Sort : uint8_t {
    value,   // a leaf
    object,  // of its children
    list,    // of its one child
    map,     // of its two children, a key that is text and a value
  };
  Sort sort = Sort::value;
  std::string name{};
  // Below these levels the node is null, for a list the empty list comes at the next one: see
  // definition of its entries. Of one that must be there: the level of what is around it.
  int definition = 0;
  int entries_definition = 0;  // of a list or a map: from this level on an entry is there
  int repetition = 0;          // of a list or a map: the level of each entry after the first one
  size_t first_leaf = 0;       // of the leaves below it: the first one, and behind the last one
  size_t end_leaf = 0;
  std::vector<Node> children{};
};

struct Schema {
  Node root;  // an object
  std::vector<Leaf> leaves{};
};

// Throws Damaged for a schema that is no tree or has more than kMaxLeaves columns.
Schema schema_of(const FileMetadata& file);
inline constexpr size_t kMaxLeaves = 4096;

}  // namespace snug::text::parquet
