#include "text/source/parquet/parquet_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "text/source/json_text.h"
#include "text/source/parquet/compact.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using parquet::Damaged;
using parquet::Meaning;
using parquet::Node;
using parquet::Physical;

constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kEncryptedMagic = "PARE";
constexpr int64_t kTailBytes = 8;  // the size of the footer, and the magic

template <typename Float>
void write_float(Float value, std::string& text) {
  if (!std::isfinite(value)) {
    const char* number = std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    text += fmt::format(R"({{"number":"{}"}})", number);
    return;
  }
  const std::string number = fmt::format("{}", value);
  text += number;
  if (number.find_first_of(".e") == std::string::npos) text += ".0";  // 3.0, as others write it
}

}  // namespace

ParquetText::ParquetText(const std::string& path, std::span<const std::string> unread)
    : path_(path), file_(base::File::open_for_reading(path)) {
  try {
    read_footer();
    open_columns(unread);
  } catch (const Damaged& error) {
    throw base::UserError(fmt::format("the Parquet file cannot be read: {}", error.what()),
                          {path, 0, 0});
  }
}

void ParquetText::read_footer() {
  const int64_t size = file_.size();
  if (size < kTailBytes + static_cast<int64_t>(kMagic.size()))
    throw Damaged("it is too short to be one");
  char tail[kTailBytes];
  file_.read_at(size - kTailBytes, tail, kTailBytes);
  const std::string_view magic(tail + sizeof(uint32_t), kMagic.size());
  if (magic == kEncryptedMagic) throw Damaged("it is encrypted");
  if (magic != kMagic)
    throw Damaged("it does not end as one does; was it copied or downloaded whole?");
  uint32_t footer_bytes = 0;
  std::memcpy(&footer_bytes, tail, sizeof(footer_bytes));
  if (footer_bytes > size - kTailBytes) throw Damaged("its footer is larger than the file");
  if (footer_bytes > kMaxFooterBytes)
    throw Damaged(
        fmt::format("its footer has {} bytes, and {} are read; write it with larger row "
                    "groups or fewer columns",
                    footer_bytes, kMaxFooterBytes));
  std::string footer(footer_bytes, '\0');
  file_.read_at(size - kTailBytes - footer_bytes, footer.data(), footer_bytes);
  metadata_ = parquet::parse_metadata(footer, size);
  if (metadata_.is_encrypted) throw Damaged("it is encrypted");
  schema_ = parquet::schema_of(metadata_);
  for (const parquet::RowGroup& group : metadata_.groups)
    if (group.columns.size() != schema_.leaves.size() || group.rows < 0)
      throw Damaged("a row group has other columns than the schema");
}

void ParquetText::open_columns(std::span<const std::string> unread) {
  columns_.resize(schema_.leaves.size());
  for (const Node& node : schema_.root.children)
    if (std::ranges::find(unread, node.name) == unread.end())
      for (size_t leaf = node.first_leaf; leaf < node.end_leaf; ++leaf)
        columns_[leaf] =
            std::make_unique<parquet::ColumnReader>(file_, schema_.leaves[leaf], memory_);
}

bool ParquetText::next_group() {
  while (rows_left_ == 0 && group_ < metadata_.groups.size()) {
    const parquet::RowGroup& group = metadata_.groups[group_++];
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == nullptr) continue;
      if (!columns_[i]->is_at_end())
        throw Damaged("a column has more values than the file has rows");
      columns_[i]->begin(group.columns[i]);
    }
    rows_left_ = group.rows;
  }
  return rows_left_ > 0;
}

bool ParquetText::next(std::string& piece) {
  piece.clear();
  try {
    while (static_cast<int64_t>(piece.size()) < kPieceBytes && next_group()) {
      --rows_left_;
      write_object(schema_.root, piece);
      piece += '\n';
      for (const auto& column : columns_)
        if (column != nullptr && column->repetition() != 0)
          throw Damaged("a row goes on after its end");
    }
  } catch (const Damaged& error) {
    throw base::UserError(fmt::format("the Parquet file cannot be read: {}", error.what()),
                          {path_, 0, 0});
  }
  return !piece.empty();
}

// A level that is less than the node's says that it, or something around it, is null.
void ParquetText::write_node(const Node& node, std::string& text) {
  if (columns_[node.first_leaf] == nullptr) {
    text += "null";
    return;
  }
  parquet::ColumnReader& first = *columns_[node.first_leaf];
  const int definition = first.definition();
  if (definition < node.definition) {
    take_nulls(node);
    text += "null";
    return;
  }
  switch (node.sort) {
    case Node::Sort::value:
      return write_value(schema_.leaves[node.first_leaf], first, text);
    case Node::Sort::object:
      return write_object(node, text);
    case Node::Sort::list:
    case Node::Sort::map:
      break;
  }
  const bool is_map = node.sort == Node::Sort::map;
  text += is_map ? '{' : '[';
  if (definition < node.entries_definition)
    take_nulls(node);
  else
    write_entries(node, text);
  text += is_map ? '}' : ']';
}

void ParquetText::write_object(const Node& node, std::string& text) {
  text += '{';
  for (const Node& child : node.children) {
    if (text.back() != '{') text += ',';
    append_json_string(text, child.name);
    text += ':';
    write_node(child, text);
  }
  text += '}';
}

void ParquetText::write_entries(const Node& node, std::string& text) {
  parquet::ColumnReader& first = *columns_[node.first_leaf];
  bool is_first = true;
  do {
    if (!is_first) text += ',';
    is_first = false;
    if (node.sort == Node::Sort::map && first.definition() < node.children[0].definition)
      throw Damaged("a map has a key that is null");
    write_node(node.children[0], text);
    if (node.sort == Node::Sort::map) {
      text += ':';
      write_node(node.children[1], text);
    }
  } while (first.repetition() == node.repetition);
}

void ParquetText::take_nulls(const Node& node) {
  for (size_t leaf = node.first_leaf; leaf < node.end_leaf; ++leaf) columns_[leaf]->take_null();
}

void ParquetText::write_value(const parquet::Leaf& leaf, parquet::ColumnReader& column,
                              std::string& text) {
  const parquet::Scalar value = column.take_value();
  const Meaning meaning = leaf.column.meaning;
  // Dates, times and decimals are no numbers to learn.
  if (meaning == Meaning::other &&
      (*leaf.column.physical == Physical::int32 || *leaf.column.physical == Physical::int64)) {
    text += fmt::format("{{\"integer\":{}}}", value.integer);
    return;
  }
  switch (*leaf.column.physical) {
    case Physical::boolean:
      text += value.integer != 0 ? "true" : "false";
      return;
    case Physical::int32:
      if (meaning == Meaning::unsigned_integer)
        text += fmt::format("{}", static_cast<uint32_t>(value.integer));
      else
        text += fmt::format("{}", value.integer);
      return;
    case Physical::int64:
      if (meaning == Meaning::unsigned_integer)
        text += fmt::format("{}", static_cast<uint64_t>(value.integer));
      else
        text += fmt::format("{}", value.integer);
      return;
    case Physical::float32:
      return write_float(value.single, text);
    case Physical::float64:
      return write_float(value.real, text);
    case Physical::byte_array:
      // Some writers do not say of texts that they are.
      if (meaning == Meaning::text ||
          (meaning == Meaning::none && find_invalid_utf8(value.bytes) == std::string_view::npos))
        return append_json_string(text, value.bytes);
      break;
    case Physical::int96:
    case Physical::fixed_bytes:
      break;
  }
  text += fmt::format("{{\"bytes\":{}}}", value.bytes.size());
}

}  // namespace snug::text
