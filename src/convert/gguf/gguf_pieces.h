// How the values of a GGUF file's tensors are read from a source of weights: in pieces of whole
// rows, in the order of the file. Threading: const after construction; distinct buffers may be
// filled in parallel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convert/source/weight_source.h"
#include "models/gguf/architecture.h"

namespace snug::convert {

struct GgufPiece {
  size_t tensor = 0;
  size_t part = 0;                       // of the tensor
  const SourceTensor* source = nullptr;  // of the part; nullptr: the tensor has its own values
  int64_t first = 0;                     // slab of the part
  int64_t slabs = 0;
  int64_t elements = 0;
};

// The numbers of floats that reading any piece needs.
struct GgufPieceSizes {
  int64_t values = 0;
  int64_t source = 0;      // for pieces whose elements are in another order
  int64_t read_bytes = 0;  // what the source allocates meanwhile, at most
};

class GgufPieces {
 public:
  // Throws UserError for a tensor that the source does not have, or has in another shape. Both must
  // outlive the object.
  GgufPieces(const WeightSource& source, const models::GgufModel& model);

  const std::vector<GgufPiece>& pieces() const { return pieces_; }
  const GgufPieceSizes& sizes() const { return sizes_; }

  // Fills `values` with the piece's values as they are to be written, in fp32. `buffer` has
  // sizes().source floats.
  void read(const GgufPiece& piece, std::span<float> values, std::span<float> buffer) const;

 private:
  // Rows of the source's tensor that hold slabs of a part.
  struct SourceRows {
    int64_t first = 0;
    int64_t count = 0;
  };
  void add_tensor(size_t index);
  void add_part(size_t tensor, size_t part);
  const SourceTensor& source_of(const models::GgufPart& part) const;
  static SourceRows rows_of(const models::GgufPart& part, const GgufPiece& piece);
  void read_slabs(const GgufPiece& piece, std::span<float> values, std::span<float> buffer) const;

  const WeightSource& source_;
  const models::GgufModel& model_;
  std::vector<GgufPiece> pieces_;
  GgufPieceSizes sizes_;
};

}  // namespace snug::convert
