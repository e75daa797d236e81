// The data path of quantize_folder. Tensors are cut into pieces; two workers read and quantise
// pieces in parallel and hand them, in order, to the file being written.
#pragma once

#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/quant_state.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace snug::convert {

// One tensor on its way from a source file to the file with the same position in the result.
struct StreamedTensor {
  const formats::IndexedTensor* source = nullptr;
  base::DType stored = base::DType::bf16;  // the type to which it is rounded before quantising
  bool quantised = false;
  bool transposed = false;  // its transpose is quantised
};

// The total size of the buffers for streaming these tensors.
int64_t streaming_buffer_bytes(std::span<const StreamedTensor> tensors, bool double_quant);

// The contents of a linear's JSON, except for its offset.
formats::QuantState state_of(const StreamedTensor& tensor);

// Streams all tensors in this order. Calls `open_file(file)` before the first tensor of each source
// file for the writer of the matching result file; the caller finishes the writer once its file is
// complete. Throws UserError.
using OpenFile = std::function<formats::SafetensorsWriter&(size_t file)>;
void stream_tensors(const formats::TensorIndex& index, std::span<const StreamedTensor> tensors,
                    bool double_quant, const OpenFile& open_file);

}  // namespace snug::convert
