#include "convert/gguf/gguf_pieces.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace snug::convert {
namespace {

using models::GgufPart;
using models::GgufSlabs;
using models::GgufTensor;

// Large enough for sequential reads, small enough that a piece and its blocks stay in a core's
// cache: 1 MiB of fp32.
constexpr int64_t kPieceElements = int64_t{1} << 18;

// Whether slabs follow one another in the source, so that several are read at once.
bool are_adjacent(const GgufSlabs& slabs, const SourceTensor& source) {
  return slabs.step < slabs.reach + source.row_elements();
}

// Whether the part's elements are in the order of the source.
bool is_in_order(const GgufPart& part) {
  int64_t step = 1;
  for (size_t axis = part.sizes.size(); axis-- > 0;) {
    if (part.steps[axis] != step) return false;
    step *= part.sizes[axis];
  }
  return true;
}

}  // namespace

GgufPieces::GgufPieces(const WeightSource& source, const models::GgufModel& model)
    : source_(source), model_(model) {
  for (size_t index = 0; index < model.tensors.size(); ++index) add_tensor(index);
}

void GgufPieces::add_tensor(size_t index) {
  const GgufTensor& tensor = model_.tensors[index];
  if (tensor.parts.empty()) {
    const int64_t elements = std::ssize(tensor.values);
    pieces_.push_back({.tensor = index, .elements = elements});
    sizes_.values = std::max(sizes_.values, elements);
  }
  for (size_t part = 0; part < tensor.parts.size(); ++part) add_part(index, part);
}

void GgufPieces::add_part(size_t tensor, size_t index) {
  const GgufPart& part = model_.tensors[tensor].parts[index];
  const SourceTensor& source = source_of(part);
  const GgufSlabs slabs = models::slabs_of(part);
  const int64_t at_once = std::clamp<int64_t>(kPieceElements / slabs.elements, 1, slabs.count);
  const bool plain = is_in_order(part);
  for (int64_t first = 0; first < slabs.count; first += at_once) {
    GgufPiece piece{tensor, index, &source, first, std::min(at_once, slabs.count - first), 0};
    piece.elements = piece.slabs * slabs.elements;
    pieces_.push_back(piece);
    sizes_.values = std::max(sizes_.values, piece.elements);
    if (!are_adjacent(slabs, source)) piece.slabs = 1;
    const SourceRows rows = rows_of(part, piece);
    if (!plain) sizes_.source = std::max(sizes_.source, rows.count * source.row_elements());
    sizes_.read_bytes = std::max(sizes_.read_bytes, source_.read_bytes(source, rows.count));
  }
}

const SourceTensor& GgufPieces::source_of(const GgufPart& part) const {
  for (const SourceTensor& tensor : source_.tensors()) {
    if (tensor.is_other || tensor.weight_name() != part.source) continue;
    int64_t last = part.first;
    for (size_t axis = 0; axis < part.sizes.size(); ++axis)
      last += (part.sizes[axis] - 1) * part.steps[axis];
    if (last < tensor.elements()) return tensor;
    base::throw_user_error("tensor '{}' has {} elements, fewer than config.json says", tensor.name,
                           tensor.elements());
  }
  base::throw_user_error("the model has no tensor '{}', which config.json says it has",
                         part.source);
}

GgufPieces::SourceRows GgufPieces::rows_of(const GgufPart& part, const GgufPiece& piece) {
  const GgufSlabs all = models::slabs_of(part);
  const int64_t width = piece.source->row_elements();
  const int64_t begin = part.first + piece.first * all.step;
  const int64_t end = begin + (piece.slabs - 1) * all.step + all.reach;
  return {begin / width, (end + width - 1) / width - begin / width};
}

void GgufPieces::read_slabs(const GgufPiece& piece, std::span<float> values,
                            std::span<float> buffer) const {
  const GgufPart& part = model_.tensors[piece.tensor].parts[piece.part];
  const SourceTensor& source = *piece.source;
  const SourceRows rows = rows_of(part, piece);
  const int64_t elements = rows.count * source.row_elements();
  if (is_in_order(part) && elements == std::ssize(values))
    return source_.read(source, rows.first, rows.count, values);
  const std::span<float> read = buffer.first(static_cast<size_t>(elements));
  source_.read(source, rows.first, rows.count, read);
  models::gather_slabs(part, piece.first, piece.slabs, read, rows.first * source.row_elements(),
                       values);
}

void GgufPieces::read(const GgufPiece& piece, std::span<float> values,
                      std::span<float> buffer) const {
  const GgufTensor& tensor = model_.tensors[piece.tensor];
  if (piece.source == nullptr) {
    std::ranges::copy(tensor.values, values.begin());
    return;
  }
  const GgufSlabs slabs = models::slabs_of(tensor.parts[piece.part]);
  const int64_t at_once = are_adjacent(slabs, *piece.source) ? piece.slabs : 1;
  GgufPiece some = piece;
  some.slabs = at_once;
  const auto elements = static_cast<size_t>(at_once * slabs.elements);
  for (size_t done = 0; done < values.size(); done += elements, some.first += at_once)
    read_slabs(some, values.subspan(done, elements), buffer);
  if (tensor.is_rate)
    for (float& value : values) value = -std::exp(value);
  if (tensor.added == 0.0F && tensor.factor == 1.0F) return;
  for (float& value : values) value = (value + tensor.added) * tensor.factor;
}

}  // namespace snug::convert
